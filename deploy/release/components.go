package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/licensedetect/local"
	"github.com/rs/zerolog"
)

// writeComponents writes for each target the list of components in CycloneDX
// (SBOM), as the Go linker recorded them in the program, with their licences.
func (r *release) writeComponents() error {
	libraries, err := r.libraries()
	if err != nil {
		return err
	}
	folder := map[string]string{}
	for _, l := range libraries {
		folder[l.Path] = l.Dir
		if l.Replace != nil {
			folder[l.Replace.Path] = l.Dir
		}
	}
	for _, t := range r.targets {
		list, err := r.components(t, folder)
		if err != nil {
			return fmt.Errorf("listing the components for %s: %w", t, err)
		}
		if err := r.writeList(list, fmt.Sprintf("xtimer-%s-%s.cdx.json", r.version, t)); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) components(t target, folder map[string]string) (*cyclonedx.BOM, error) {
	silent := zerolog.Nop()
	g, err := bin.NewGenerator(r.program(t), bin.WithIncludeStdlib(true), bin.WithVersionOverride("v"+r.version), bin.WithLogger(silent))
	if err != nil {
		return nil, err
	}
	list, err := g.Generate()
	if err != nil {
		return nil, err
	}
	list.Metadata.Timestamp = r.date.Format("2006-01-02T15:04:05Z")
	list.Metadata.Component.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	detector := local.NewDetector(silent)
	for i := range *list.Components {
		c := &(*list.Components)[i]
		dir := folder[c.Name]
		if dir == "" {
			continue // the standard library
		}
		found, err := detector.Detect(c.Name, c.Version, dir)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", c.Name, err)
		}
		licences := cyclonedx.Licenses{}
		for _, l := range found {
			licences = append(licences, cyclonedx.LicenseChoice{License: &l})
		}
		if len(licences) > 0 {
			c.Evidence = &cyclonedx.Evidence{Licenses: &licences}
		}
	}
	return list, nil
}

func (r *release) writeList(list *cyclonedx.BOM, name string) error {
	return writeTo(filepath.Join(r.out, name), func(out io.Writer) error {
		return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(list)
	})
}
