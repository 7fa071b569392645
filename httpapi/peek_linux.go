package httpapi

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peek looks at a socket without waiting and without taking anything from it.
type peek struct {
	raw     syscall.RawConn
	look    func(fd uintptr) // made once: a closure a look would be garbage
	isQuiet bool
}

func (p *peek) open(c net.Conn) (err error) {
	p.raw, err = c.(*net.TCPConn).SyscallConn()
	p.look = func(fd uintptr) {
		var b [1]byte
		// Raw, for it never blocks: the scheduler need not know.
		_, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1,
			unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
		p.isQuiet = errno == unix.EAGAIN
	}
	return err
}

// quiet tells that the socket is open with nothing to read: 0 bytes would be
// its end, a byte something unasked, another error its failure.
func (p *peek) quiet() bool {
	p.isQuiet = false
	return p.raw.Control(p.look) == nil && p.isQuiet
}
