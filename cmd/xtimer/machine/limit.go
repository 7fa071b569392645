package machine

import (
	"fmt"
	"log/slog"
	"syscall"
)

// FewFiles is a limit of open files with which a node runs but has to make
// calls wait: each call in flight and each client is a file.
const FewFiles = 4096

// RaiseFiles raises the limit of open files to the most that is allowed, and
// says so in the log when that is little.
func RaiseFiles(log *slog.Logger) (limit uint64, err error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	if l.Cur < l.Max {
		l.Cur = l.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
			return 0, fmt.Errorf("cannot raise the limit of open files to %d: %w", l.Max, err)
		}
	}
	if l.Cur < FewFiles {
		log.Warn("few files may be open: calls will have to wait", "limit", l.Cur, "better", FewFiles)
	}
	return l.Cur, nil
}
