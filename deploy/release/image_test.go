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

// image is the image of the release for a processor, unpacked as its layer says.
type image struct {
	processor, root, user string
	entrypoint, command   []string
}

// pulled pulls an image with skopeo and unpacks it.
func pulled(t *testing.T, processor string) image {
	t.Helper()
	dir := t.TempDir()
	does(t, "skopeo", "--override-arch", processor, "--override-os", "linux", "copy", "--insecure-policy",
		"oci-archive:"+released(t, "-image.tar"), "dir:"+dir)
	var manifest struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	read(t, dir+"/manifest.json", &manifest)
	var about struct {
		Architecture string
		Config       struct {
			User            string
			Entrypoint, Cmd []string
		}
	}
	blob := func(digest string) string { return filepath.Join(dir, strings.TrimPrefix(digest, "sha256:")) }
	read(t, blob(manifest.Config.Digest), &about)
	if about.Architecture != processor || len(manifest.Layers) != 1 {
		t.Fatalf("%+v with %d layers", about, len(manifest.Layers))
	}
	i := image{processor, t.TempDir(), about.Config.User, about.Config.Entrypoint, about.Config.Cmd}
	does(t, "tar", "--same-owner", "-xpf", blob(manifest.Layers[0].Digest), "-C", i.root)
	return i
}

// TestImage runs the image for each processor as its configuration says: as its user,
// with a root that cannot be written, and only the data folder and /dev beside it.
func TestImage(t *testing.T) {
	for _, processor := range []string{"amd64", "arm64"} {
		t.Run(processor, func(t *testing.T) {
			i := pulled(t, processor)
			if i.user != "65532:65532" {
				t.Errorf("the user is %s", i.user)
			}
			hasCertificates(t, i.root)
			data := filepath.Join(t.TempDir(), "data")
			does(t, "install", "-d", "-o", "65532", "-g", "65532", "-m", "0700", data)
			address := i.runsReadOnly(t, i.user, map[string]string{"/data": data}, slices.Concat(i.entrypoint, i.command))
			fires(t, address, "")
			if _, err := os.Stat(data + "/journal"); err != nil {
				t.Errorf("the server does not keep its data in the volume: %v", err)
			}
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

// runsReadOnly runs a server of the image in a mount namespace of its own, with folders
// of this machine at paths of the image, and returns its address.
func (i image) runsReadOnly(t *testing.T, user string, volumes map[string]string, command []string) (address string) {
	t.Helper()
	script := `set -e
		root=$1 user=$2; shift 2
		mount --bind "$root" "$root"
		mkdir -p "$root/dev" "$root/proc" && mount -t tmpfs -o mode=0755 none "$root/dev" && mknod -m 0666 "$root/dev/null" c 1 3 && mknod -m 0666 "$root/dev/urandom" c 1 9
		mount -t proc none "$root/proc"
		while [ "$1" != -- ]; do mkdir -p "$root$1" && mount --bind "$2" "$root$1" && shift 2; done
		shift
		mount -o remount,bind,ro "$root"
		exec chroot --userspec="$user" "$root" "$@"`
	args := []string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", i.root, user}
	for path, folder := range volumes {
		args = append(args, path, folder)
	}
	args = append(args, "--")
	if emulator := emulators[i.processor]; i.processor != runtime.GOARCH {
		// The emulator is static: it lies in the image for the time of the test.
		path, err := exec.LookPath(emulator)
		if err != nil {
			t.Fatalf("%s is missing: apt-get install qemu-user-static", emulator)
		}
		does(t, "cp", path, i.root+"/emulator")
		args = append(args, "/emulator")
	}
	address = free(t)
	args = append(args, command...)
	starts(t, exec.Command("unshare", append(args, "--listen", address, "--clock-wait", "0")...))
	return address
}
