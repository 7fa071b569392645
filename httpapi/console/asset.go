package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// The scripts and styles: ours, and those of npm as assets/package.json pins
// them; `make console-assets` brings them.
//
//go:embed assets/*.js assets/*.css assets/*.svg assets/*.LICENSE
var assetFiles embed.FS

type asset struct {
	plain, zipped []byte
	kind, hash    string
}

var assets = sync.OnceValue(func() map[string]asset {
	all := make(map[string]asset)
	files, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	for _, f := range files {
		b, err := assetFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			panic("BUG: " + err.Error())
		}
		var z bytes.Buffer
		w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression)
		_, _ = w.Write(b) // a buffer takes all
		_ = w.Close()
		sum := sha256.Sum256(b)
		all[f.Name()] = asset{b, z.Bytes(), mime.TypeByExtension(path.Ext(f.Name())), hex.EncodeToString(sum[:6])}
	}
	return all
})

// assetURL names an asset by what is in it, so that it can be kept for ever.
func assetURL(name string) string {
	a, ok := assets()[name]
	if !ok {
		panic("BUG: no asset " + name)
	}
	return "/assets/" + name + "?" + a.hash
}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := assets()[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	if r.URL.RawQuery == a.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Content-Type", a.kind)
	h.Set("Vary", "Accept-Encoding")
	b := a.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		b = a.zipped
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // who went away needs no answer
}
