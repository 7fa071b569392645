// Command release makes what xtimer is distributed as: archives of the program,
// packages, an image, a Helm chart, lists of components, and the checksums of all. Two
// runs over the same commit with the same Go toolchain write the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	version := flag.String("version", "", "version of the release, as 1.2.3 or v1.2.3")
	commit := flag.String("commit", "", "commit that is released")
	date := flag.Int64("date", 0, "time of the commit, in Unix seconds: the time of all files")
	source := flag.String("source", ".", "checkout of the repository")
	out := flag.String("out", "dist", "folder for the results; former results in it are removed")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "systems to build for")
	flag.Parse()

	r := release{version: strings.TrimPrefix(*version, "v"), commit: *commit, date: time.Unix(*date, 0).UTC(), source: *source, out: *out}
	err := r.parseTargets(*targets)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one version of xtimer, and the folders that lead to it.
type release struct {
	version, commit string
	date            time.Time
	source, out     string
	stage           string // files between two steps; removed at the end
	targets         []target
}

// target is a system that the program is built for.
type target struct{ system, processor string }

func (t target) String() string { return t.system + "-" + t.processor }

func (r *release) parseTargets(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		system, processor, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("target %q is not system/processor", name)
		}
		r.targets = append(r.targets, target{system, processor})
	}
	return nil
}

// run makes all files of the release.
func (r *release) run() error {
	if r.version == "" || r.date.Unix() == 0 {
		return fmt.Errorf("the version and the date are missing: run make release in a checkout, or give VERSION= and SOURCE_DATE_EPOCH=")
	}
	if !semver.IsValid("v" + r.version) { // the chart takes no other, and is made last
		return fmt.Errorf("the version %q is not a semantic version such as 1.2.3", r.version)
	}
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("removing the former release: %w", err)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("making the folder of the release: %w", err)
	}
	stage, err := os.MkdirTemp("", "xtimer-release-")
	if err != nil {
		return fmt.Errorf("making a folder for the steps: %w", err)
	}
	defer os.RemoveAll(stage)
	r.stage = stage

	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"programs", r.buildAll},
		{"manual", r.writeManual},
		{"notices", r.writeNotices},
		{"archives", r.writeArchives},
		{"packages", r.writePackages},
		{"image", r.writeImage},
		{"chart", r.writeChart},
		{"components", r.writeComponents},
		{"checksums", r.writeSums},
	} {
		start := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%-12s %.1f s\n", step.name, time.Since(start).Seconds())
	}
	return nil
}

// program is the path of the program for a target.
func (r *release) program(t target) string { return filepath.Join(r.stage, t.String(), "xtimer") }

// host is the target of this machine.
func host() target { return target{runtime.GOOS, runtime.GOARCH} }
