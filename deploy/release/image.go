package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user and the group in the image. Neither has rights elsewhere.
const user = 65532

// writeImage writes an OCI archive with an image for each target of Linux. The
// image has the program, the certificates that it trusts and its data folder;
// time zones are in the program.
func (r *release) writeImage() error {
	index := v1.ImageIndex(mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	for _, t := range r.targets {
		if t.system != "linux" {
			continue
		}
		image, err := r.image(t)
		if err != nil {
			return fmt.Errorf("image for %s: %w", t, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.system, Architecture: t.processor}},
		})
	}
	// The archive has one entry: the index of all processors, named by the version.
	folder := filepath.Join(r.stage, "image")
	top, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := top.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.tag()})); err != nil {
		return err
	}
	var files []file
	err = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files = append(files, file{name, path, 0o644})
		return err
	})
	if err != nil {
		return err
	}
	return writeTo(filepath.Join(r.out, fmt.Sprintf("xtimer-%s-image.tar", r.version)), func(out io.Writer) error {
		return writeEntries(out, "", files, r.date)
	})
}

// tag is the version as the tag of an image, in which + may not be.
func (r *release) tag() string { return strings.ReplaceAll(r.version, "+", "_") }

func (r *release) image(t target) (v1.Image, error) {
	content, err := r.layerContent(t)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "make release"},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture, config.Created = t.system, t.processor, v1.Time{Time: r.date}
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Entrypoint:   []string{"/xtimer"},
		Cmd:          []string{"serve", "--data-dir", "/data"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes:      map[string]struct{}{"/data": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "xtimer", "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.revision": r.commit,
		},
	}
	return mutate.ConfigFile(image, config)
}

// layerContent is the only layer of the image, as a tar file.
func (r *release) layerContent(t target) ([]byte, error) {
	program, err := os.ReadFile(r.program(t))
	if err != nil {
		return nil, err
	}
	notices, err := os.ReadFile(filepath.Join(r.stage, "NOTICES"))
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	certificates, err := roots()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	archive := tar.NewWriter(&b)
	for _, e := range []struct {
		header  tar.Header
		content []byte
	}{
		{tar.Header{Name: "data/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: user, Gid: user}, nil},
		{tar.Header{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644}, certificates},
		{tar.Header{Name: "etc/passwd", Mode: 0o644}, fmt.Appendf(nil, "xtimer:x:%d:%d::/data:/none\n", user, user)},
		{tar.Header{Name: "LICENSE", Mode: 0o644}, licence},
		{tar.Header{Name: "NOTICES", Mode: 0o644}, notices},
		{tar.Header{Name: "xtimer", Mode: 0o755}, program},
	} {
		e.header.Size, e.header.ModTime = int64(len(e.content)), r.date
		if err := archive.WriteHeader(&e.header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil // not before Close, which writes the end
}

// roots are the certificates of the authorities that Mozilla trusts, in the version
// that go.mod pins. Authorities that are trusted with restrictions are left out,
// because the form of the file has no place for restrictions.
func roots() ([]byte, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	if b.Len() == 0 {
		return nil, fmt.Errorf("no certificates of authorities")
	}
	return b.Bytes(), nil
}
