package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

var client = &http.Client{
	Timeout:   20 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 64},
}

var names atomic.Int64

// patience is the timeout of calls where nothing else is said.
const patience = 15 * time.Second

// oneShot is one line of a batch: a timer due at an instant.
func oneShot(b *bytes.Buffer, url string, due time.Time, timeout time.Duration) (name string) {
	name = fmt.Sprintf("shot-%d", names.Add(1))
	fmt.Fprintf(b, `{"app":"bench","name":%q,"schedule":{"at":%d},"callback":{"url":%q,"timeout":"%s","headers":{"X-Order":"%s"},"body":{"order":%q,"kind":"expire"}}}`+"\n",
		name, due.UnixMilli(), url, timeout, name, name)
	return name
}

// createBatch posts lines of NDJSON and returns the ids that were acknowledged,
// "" where a line was not.
func createBatch(base string, lines []byte) (ids []string, err error) {
	r, err := client.Post(base+"/v1/timers/batch", "application/x-ndjson", bytes.NewReader(lines))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var out struct {
		Results []struct {
			Status int
			ID     string
			Error  json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
		return nil, err
	}
	if r.StatusCode != 200 {
		return nil, fmt.Errorf("status %d", r.StatusCode)
	}
	for _, x := range out.Results {
		if x.Status != 201 {
			return nil, fmt.Errorf("a line was refused: %d %s", x.Status, x.Error)
		}
		ids = append(ids, x.ID)
	}
	return ids, nil
}
