package local

import (
	"os"
	"strconv"
	"strings"
)

// rss is the resident memory of this process in bytes; 0 where it cannot be told.
func rss() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}
