package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// chroot is a Debian of its own, without systemd: packages are tried in it.
type chroot struct {
	t   *testing.T
	dir string
}

func newChroot(t *testing.T) chroot {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("the packages are tried in a chroot: run this test as root")
	}
	sites := strings.Fields(does(t, "apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)"))
	c := chroot{t, filepath.Join(t.TempDir(), "debian")}
	does(t, "debootstrap", "--variant=minbase", sites[1], c.dir, sites[0])
	return c
}

func (c chroot) path(name string) string { return filepath.Join(c.dir, name) }

// run runs a program in the chroot; it must succeed.
func (c chroot) run(args ...string) string {
	c.t.Helper()
	return does(c.t, "chroot", append([]string{c.dir}, args...)...)
}

func (c chroot) has(name string, want bool) {
	c.t.Helper()
	if _, err := os.Lstat(c.path(name)); (err == nil) != want {
		c.t.Errorf("%s is there: %t, expected %t", name, err == nil, want)
	}
}

// copyIn copies a file to the top of the chroot.
func (c chroot) copyIn(file string) string {
	c.t.Helper()
	does(c.t, "cp", file, c.dir)
	return "/" + filepath.Base(file)
}

// serves starts the server as the installed unit does, as another user, with the
// settings that systemd would hand over, and has it fire a timer.
func (c chroot) serves() {
	c.t.Helper()
	unit, err := os.ReadFile(c.path("usr/lib/systemd/system/xtimer.service"))
	if err != nil {
		c.t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(string(unit))
	if command == nil {
		c.t.Fatalf("no ExecStart in %s", unit)
	}
	for _, dir := range []string{"run/credentials", "var/lib/private/xtimer"} {
		does(c.t, "install", "-d", "-o", "65532", "-g", "65532", "-m", "0700", c.path(dir))
	}
	does(c.t, "install", "-o", "65532", "-m", "0400", c.path("etc/xtimer/xtimer.yaml"), c.path("run/credentials"))
	line := strings.NewReplacer("${CREDENTIALS_DIRECTORY}", "/run/credentials", "${STATE_DIRECTORY}", "/var/lib/private/xtimer").Replace(command[1])
	c.t.Run("serve", func(t *testing.T) {
		address := free(t)
		args := append([]string{"--userspec=65532:65532", c.dir}, strings.Fields(line)...)
		starts(t, exec.Command("chroot", append(args, "--listen", address, "--clock-wait", "0")...))
		fires(t, address, "")
	})
}

// older makes packages of an older version, from the archive of the release.
func older(t *testing.T) string {
	t.Helper()
	stage := unpacked(t, released(t, "-linux-amd64.tar.gz"))
	if err := os.Mkdir(filepath.Join(stage, "linux-amd64"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(stage+"/xtimer", stage+"/linux-amd64/xtimer"); err != nil {
		t.Fatal(err)
	}
	r := release{
		version: "0.0.0-0", date: time.Unix(1764028800, 0).UTC(), source: "../..", out: t.TempDir(), stage: stage,
		targets: []target{{"linux", "amd64"}},
	}
	if err := r.writePackages(); err != nil {
		t.Fatal(err)
	}
	return r.out
}

func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// TestPackages tries both packages in one Debian, one after the other.
func TestPackages(t *testing.T) {
	c, former := newChroot(t), older(t)
	t.Run("debian", func(t *testing.T) { triesDebian(t, chroot{t, c.dir}, former) })
	t.Run("rpm", func(t *testing.T) { triesRPM(t, chroot{t, c.dir}, former) })
}

// triesDebian installs, upgrades, removes and purges the package for Debian.
func triesDebian(t *testing.T, c chroot, former string) {
	c.run("dpkg", "-i", c.copyIn(only(t, former+"/*.deb")))
	wants := "etc/systemd/system/multi-user.target.wants/xtimer.service"
	c.has(wants, true)
	c.serves()

	settings := c.path("etc/xtimer/xtimer.yaml")
	if err := os.WriteFile(settings, []byte("drain: 5s\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	does(t, "systemctl", "--root="+c.dir, "disable", "xtimer.service")
	c.run("dpkg", "-i", c.copyIn(released(t, "_amd64.deb")))
	c.has(wants, false) // the upgrade keeps what the administrator decided
	if b, err := os.ReadFile(settings); err != nil || string(b) != "drain: 5s\n" {
		t.Errorf("the upgrade changed the settings: %q, %v", b, err)
	}
	if out := c.run("xtimer", "--version"); !strings.Contains(out, "xtimer "+versionOf(t)+" (") {
		t.Errorf("after the upgrade: %s", out)
	}
	c.serves()
	c.installed("usr/share/zsh/vendor-completions/_xtimer")
	does(t, "dpkg", "--root="+c.dir, "--verify", "xtimer")

	c.run("dpkg", "--remove", "xtimer")
	c.has("usr/bin/xtimer", false)
	c.has("etc/xtimer/xtimer.yaml", true)
	c.has("var/lib/private/xtimer/journal", true)
	c.run("dpkg", "--purge", "xtimer")
	for _, name := range []string{"etc/xtimer", "var/lib/private/xtimer", "var/lib/systemd/deb-systemd-helper-enabled/xtimer.service.dsh-also", wants} {
		c.has(name, false)
	}
}

// installed looks at what a package installs beside the program.
func (c chroot) installed(zsh string) {
	c.t.Helper()
	does(c.t, "bash", "-n", c.path("usr/share/bash-completion/completions/xtimer"))
	if page := does(c.t, "gzip", "-dc", c.path("usr/share/man/man1/xtimer-serve.1.gz")); !strings.Contains(page, "--data-dir") {
		c.t.Errorf("the manual of serve: %.200s", page)
	}
	c.has(zsh, true)
	c.has("usr/share/fish/vendor_completions.d/xtimer.fish", true)
	c.has("usr/share/doc/xtimer/NOTICES.gz", true)
	about, err := os.Stat(c.path("etc/xtimer/xtimer.yaml"))
	if err != nil || about.Mode().Perm() != 0o640 {
		c.t.Errorf("settings: %v, %v", about, err)
	}
	unit, err := os.ReadFile(c.path("usr/lib/systemd/system/xtimer.service"))
	if err != nil {
		c.t.Fatal(err)
	}
	name := filepath.Join(c.t.TempDir(), "xtimer.service")
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(string(unit), "/usr/bin/xtimer", "/bin/true")), 0o644); err != nil {
		c.t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", name).CombinedOutput()
	if err != nil || strings.Contains(string(out), "xtimer.service") {
		c.t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// triesRPM installs, upgrades and erases the package for RPM, beside Debian's own.
func triesRPM(t *testing.T, c chroot, former string) {
	rpm := func(args ...string) string {
		t.Helper()
		return does(t, "rpm", append([]string{"--root", c.dir, "--dbpath", "/var/lib/rpm", "--nodeps"}, args...)...)
	}
	rpm("-i", only(t, former+"/*.rpm"))
	c.serves()
	settings := c.path("etc/xtimer/xtimer.yaml")
	if err := os.WriteFile(settings, []byte("drain: 5s\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	rpm("-U", released(t, ".x86_64.rpm"))
	if b, err := os.ReadFile(settings); err != nil || string(b) != "drain: 5s\n" {
		t.Errorf("the upgrade changed the settings: %q, %v", b, err)
	}
	if out := c.run("/usr/bin/xtimer", "--version"); !strings.Contains(out, "xtimer "+versionOf(t)+" (") {
		t.Errorf("after the upgrade: %s", out)
	}
	c.serves()
	c.installed("usr/share/zsh/site-functions/_xtimer")
	rpm("-e", "xtimer")
	c.has("usr/bin/xtimer", false)
	c.has("var/lib/private/xtimer/journal", true)
}

// TestLintian: Debian's checker finds nothing, down to its hints.
func TestLintian(t *testing.T) {
	for _, processor := range []string{"amd64", "arm64"} {
		out, err := exec.Command("lintian", "--pedantic", "--display-info", "--fail-on", "error,warning,info,pedantic", "--tag-display-limit", "0",
			released(t, "_"+processor+".deb")).CombinedOutput()
		out = []byte(strings.ReplaceAll(string(out), "running with root privileges is not recommended!\n", ""))
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", processor, err, out)
		}
	}
}
