package bench

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// binary is the real xtimer, built once for the tests of this package, or the
// program that XTIMER_BINARY names, such as an earlier build.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(bareEnv) != "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2) // as xtimer does; it gains by it, too
		if err := runBareLoop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(hostileEnv) != "" {
		if err := runHostile(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if runtime.GOMAXPROCS(0) < besides {
		if err := flag.Set("test.parallel", strconv.Itoa(besides)); err != nil {
			panic(err)
		}
	}
	if binary = os.Getenv("XTIMER_BINARY"); binary != "" {
		os.Exit(m.Run())
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "xtimer-bench-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "xtimer")
		build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", binary, "xtimer/cmd/xtimer") // as make build
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot build xtimer:", err)
			return 1
		}
		return m.Run()
	}())
}
