package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestImage pulls the image for each processor with skopeo, unpacks it as its layer
// says, and runs it as its configuration says: as its user, with a root that cannot
// be written, and only the data folder and /dev beside it.
func TestImage(t *testing.T) {
	for _, processor := range []string{"amd64", "arm64"} {
		t.Run(processor, func(t *testing.T) {
			dir := t.TempDir()
			does(t, "skopeo", "--override-arch", processor, "--override-os", "linux", "copy", "--insecure-policy",
				"oci-archive:"+released(t, "-image.tar"), "dir:"+dir)
			var manifest struct {
				Config struct{ Digest string }
				Layers []struct{ Digest string }
			}
			read(t, dir+"/manifest.json", &manifest)
			var image struct {
				Architecture string
				Config       struct {
					User            string
					Entrypoint, Cmd []string
				}
			}
			blob := func(digest string) string { return filepath.Join(dir, strings.TrimPrefix(digest, "sha256:")) }
			read(t, blob(manifest.Config.Digest), &image)
			if image.Architecture != processor || image.Config.User != "65532:65532" || len(manifest.Layers) != 1 {
				t.Fatalf("%+v with %d layers", image, len(manifest.Layers))
			}
			root := t.TempDir()
			does(t, "tar", "--same-owner", "-xpf", blob(manifest.Layers[0].Digest), "-C", root)
			hasCertificates(t, root)
			command := slices.Concat(image.Config.Entrypoint, image.Config.Cmd)
			runsReadOnly(t, processor, root, image.Config.User, command)
		})
	}
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// hasCertificates: openssl reads the certificates in an image, and they are many.
func hasCertificates(t *testing.T, root string) {
	t.Helper()
	out := does(t, "openssl", "storeutl", "-noout", "-certs", root+"/etc/ssl/certs/ca-certificates.crt")
	var n int
	if _, err := fmt.Sscanf(out[strings.LastIndex(out, "Total found"):], "Total found: %d", &n); err != nil || n < 80 {
		t.Errorf("%d certificates (%v): %.200s", n, err, out)
	}
}

// runsReadOnly runs a command in a mount namespace of its own.
func runsReadOnly(t *testing.T, processor, root, user string, command []string) {
	t.Helper()
	script := `set -e
		mount --bind "$1" "$1"
		mkdir -p "$1/dev" "$1/proc" && mount -t tmpfs -o mode=0755 none "$1/dev" && mknod -m 0666 "$1/dev/null" c 1 3 && mknod -m 0666 "$1/dev/urandom" c 1 9
		mount -t proc none "$1/proc"
		data=$(mktemp -d) && chown 65532:65532 "$data" && mount --bind "$data" "$1/data"
		mount -o remount,bind,ro "$1"
		root=$1 user=$2; shift 2
		exec chroot --userspec="$user" "$root" "$@"`
	args := []string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", root, user}
	if emulator := emulators[processor]; processor != runtime.GOARCH {
		// The emulator is static: it lies in the image for the time of the test.
		path, err := exec.LookPath(emulator)
		if err != nil {
			t.Fatalf("%s is missing: apt-get install qemu-user-static", emulator)
		}
		does(t, "cp", path, root+"/emulator")
		args = append(args, "/emulator")
	}
	address := free(t)
	args = append(args, command...)
	args = append(args, "--listen", address, "--clock-wait", "0")
	starts(t, exec.Command("unshare", args...))
	fires(t, address, "")
	if _, err := os.Stat(root + "/data/journal"); err == nil {
		t.Error("the server wrote into the image, not into the volume")
	}
}
