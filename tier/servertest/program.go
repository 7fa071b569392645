package servertest

import (
	"os/exec"
	"testing"
)

// find finds a program by the first of its names that is installed. Servers
// live in folders that an ordinary user's PATH does not have.
func find(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		for _, dir := range []string{"", "/usr/sbin/", "/usr/local/sbin/", "/usr/local/bin/"} {
			if path, err := exec.LookPath(dir + name); err == nil {
				return path
			}
		}
	}
	t.Fatalf("%s is not installed: run `make servers` as root, or apt-get install mariadb-server-core mariadb-client-core redis-tools", names[0])
	return ""
}
