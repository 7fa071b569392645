package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// plotLateness draws which share of the calls came at most so late: one line a
// row. The axis is logarithmic; what came early stands at its left end.
func plotLateness(file string, rows []*figures) error {
	const least = 0.02 // ms
	p := plot.New()
	p.Title.Text = fmt.Sprintf("How late calls come, at %d a second (early ones at the left end)", rate)
	p.X.Label.Text = "late by at most, ms"
	p.Y.Label.Text = "share of the calls"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max, p.X.Min = 0, 1, least
	p.BackgroundColor = color.White
	p.Add(plotter.NewGrid())
	for i, f := range rows {
		n := len(f.late)
		if n == 0 {
			continue
		}
		points := min(n, 500)
		xy := make(plotter.XYs, points)
		for k := range xy {
			j := (k + 1) * n / points
			xy[k] = plotter.XY{X: max(float64(f.late[j-1])/1e6, least), Y: float64(j) / float64(n)}
		}
		line, err := plotter.NewLine(xy)
		if err != nil {
			return err
		}
		line.Color, line.Width = plotutil.SoftColors[i%len(plotutil.SoftColors)], vg.Points(1.5)
		line.Dashes = plotutil.Dashes(i / len(plotutil.SoftColors))
		p.Add(line)
		p.Legend.Add(f.name, line)
	}
	p.Legend.Top, p.Legend.Left = false, false
	p.Legend.TextStyle.Font.Size = font.Points(9)
	return p.Save(22*vg.Centimeter, 13*vg.Centimeter, file)
}
