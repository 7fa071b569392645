package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math"
	"net"
	"net/textproto"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"xtimer/engine/alert"
)

// mailer sends mails. It dials as a Sender does.
type mailer struct {
	dialer *net.Dialer
	roots  *x509.CertPool // nil: those of the machine
}

// mostRead is how much of an answer is read, and of what a mail server says in one conversation.
const mostRead = 1 << 20

// bounded is a connection that ends after it has read so much.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// send sends a message once.
func (s *mailer) send(ctx context.Context, d *alert.Delivery, password string) alert.Result {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := mailOf(d, time.Now())
	if err != nil {
		return alert.Result{Final: true, Error: err.Error()}
	}
	to := d.Channel.SMTP
	security := &tls.Config{ServerName: to.Host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	options := []mail.Option{
		mail.WithPort(to.Port), mail.WithTimeout(patience), mail.WithTLSConfig(security), mail.WithoutNoop(),
		mail.WithDialContextFunc(func(_ context.Context, network, address string) (net.Conn, error) {
			return s.dial(ctx, network, address, to.TLS == "tls", security)
		}),
	}
	switch to.TLS {
	case "tls":
		options = append(options, mail.WithSSL())
	case "none":
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if to.User != "" {
		options = append(options, mail.WithUsername(to.User), mail.WithPassword(password),
			mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthSCRAMSHA1, mail.SMTPAuthPlain, mail.SMTPAuthLogin))
	}
	client, err := mail.NewClient(to.Host, options...)
	if err != nil {
		return alert.Result{Final: true, Error: err.Error()}
	}
	server, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return refusal(err)
	}
	defer server.Close()
	err = client.SendWithSMTPClient(server, m)
	if m.IsDelivered() {
		_ = server.Quit() // the mail is taken, whatever the answer
		return alert.Result{Delivered: true, Status: 250}
	}
	return refusal(err)
}

// dial makes a connection that ends with ctx, whose end is that of the whole conversation.
func (s *mailer) dial(ctx context.Context, network, address string, secure bool, security *tls.Config) (net.Conn, error) {
	cn, err := s.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { cn.Close() })
	limited := &bounded{cn, mostRead}
	if !secure {
		return limited, nil
	}
	secured := tls.Client(limited, security)
	if err := secured.HandshakeContext(ctx); err != nil {
		cn.Close()
		return nil, err
	}
	return secured, nil
}

// refusal says what an error of a conversation means. It has nothing of what a server says
// while it is told a password, for that may be the password.
func refusal(err error) alert.Result {
	var said *textproto.Error
	if errors.As(err, &said) {
		r := alert.Result{Final: said.Code >= 500, Status: said.Code, Answer: cut(said.Msg, 1<<10), Error: "the mail server refuses the message"}
		if strings.Contains(err.Error(), "AUTH") {
			r.Answer, r.Error = "", "the mail server refuses the user and the password"
		}
		return r
	}
	var failed *mail.SendError
	if errors.As(err, &failed) && failed.ErrorCode() != 0 {
		code := failed.ErrorCode()
		return alert.Result{Final: code >= 500, Status: code, Answer: cut(failed.Error(), 1<<10), Error: "the mail server refuses the message"}
	}
	return alert.Result{Error: err.Error()}
}

// mailOf is a message as a mail. Mails of one incident are a thread.
func mailOf(d *alert.Delivery, now time.Time) (*mail.Msg, error) {
	m := mail.NewMsg()
	to := d.Channel.SMTP
	if err := errors.Join(m.From(to.From), m.To(to.To...)); err != nil {
		return nil, err
	}
	host := "xtimer"
	if from := m.GetFrom(); len(from) == 1 {
		host = from[0].Address[strings.LastIndexByte(from[0].Address, '@')+1:]
	}
	m.SetMessageIDWithValue(d.Message.ID + "@" + host)
	if i := d.Message.Incident; i != nil && d.Message.Type != "incident.opened" {
		first := "<al_" + i.ID + "_1@" + host + ">"
		m.SetGenHeader(mail.HeaderInReplyTo, first)
		m.SetGenHeader(mail.HeaderReferences, first)
	}
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetDateWithValue(now)
	m.Subject(title(d))
	m.SetBodyString(mail.TypeTextPlain, text(d, nil, math.MaxInt)+"\n")
	return m, nil
}
