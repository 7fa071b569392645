package httpapi

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/valyala/fasthttp"
)

// A long answer is compressed when the client takes gzip, and never else.
func TestLongAnswersAreCompressed(t *testing.T) {
	n := newNode(t)
	var batch bytes.Buffer
	for i := range 100 {
		fmt.Fprintf(&batch, `{"app":"a","name":"n%d","schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:9/x"}}`+"\n", i)
	}
	n.do("POST", "/v1/timers/batch", batch.String(), "Content-Type", "application/x-ndjson").want(200)
	get := func(path, encodings string) (*fasthttp.Response, []byte) {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.SetRequestURI("http://x" + path)
		req.Header.Set("Accept-Encoding", encodings)
		if err := n.client.Do(req, resp); err != nil {
			t.Fatal(err)
		}
		b, err := resp.BodyUncompressed()
		if err != nil {
			t.Fatal(err)
		}
		return resp, b
	}
	plain, text := get("/v1/timers", "br, deflate")
	short, same := get("/v1/timers", "gzip, br")
	if len(plain.Header.ContentEncoding()) != 0 || string(short.Header.ContentEncoding()) != "gzip" || !bytes.Equal(text, same) ||
		len(short.Body()) > len(text)/5 || string(short.Header.Peek("Vary")) != "Accept-Encoding" {
		t.Errorf("%d bytes, compressed %d: %s", len(text), len(short.Body()), &short.Header)
	}
	if one, _ := get("/v1/timers?limit=1", "gzip"); len(one.Header.ContentEncoding()) != 0 {
		t.Error("a short answer is compressed")
	}
}
