package notify

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"mime"
	"net"
	"net/mail"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"xtimer/engine/alert"
)

// postbox is a mail server, of one session at a time, that keeps what it takes.
type postbox struct {
	refuse  map[string]error // by the command
	auth    bool
	said    string // user and password
	secure  bool   // the last session had TLS
	from    string
	to      []string
	letters []string
}

func (p *postbox) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, p.secure = c.TLSConnectionState()
	p.to = nil
	if p.auth {
		return &authenticated{session{p}}, nil
	}
	return &session{p}, nil
}

type session struct{ *postbox }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return s.refuse["MAIL"]
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return s.refuse["RCPT"]
}

func (s *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.refuse["DATA"] == nil {
		s.letters = append(s.letters, string(b))
	}
	return s.refuse["DATA"]
}

func (s *session) Reset() {}

func (s *session) Logout() error { return nil }

type authenticated struct{ session }

func (s *authenticated) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *authenticated) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.said = user + ":" + password
		return s.refuse["AUTH"]
	}), nil
}

// certificate is one for localhost, and what trusts it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(made)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, roots
}

// mails sends a mail to a server, over TLS as the channel says, and returns what came of it.
func mails(t *testing.T, p *postbox, edit func(d *alert.Delivery, s *Sender)) alert.Result {
	t.Helper()
	security, roots := certificate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Secret: func(_, name string) (string, bool) { return "pass word", name == "s" }})
	s.mail.roots = roots
	d := &alert.Delivery{App: "shop", Channel: alert.Channel{Kind: "email", Lang: "en", SMTP: &alert.SMTP{
		Host: "localhost", Port: l.Addr().(*net.TCPAddr).Port, TLS: "starttls", From: "Timer <xtimer@example.com>", To: []string{"a@example.com", "b@example.com"},
	}}}
	d.Message = alert.Message{Type: "incident.opened", ID: "al_k7_1", Incident: &alert.Incident{
		ID: "k7", Rule: "r\r\n.\r\nQUIT", App: "shop", By: "x\r\nBcc: evil@example.com\r\n\r\nhi 失败", Severity: "critical", On: []string{"dead"}, Count: 3,
	}}
	if edit != nil {
		edit(d, s)
	}
	server := smtp.NewServer(p)
	server.Domain, server.TLSConfig, server.ErrorLog = "localhost", security, silent{}
	if d.Channel.SMTP.TLS == "tls" {
		l = tls.NewListener(l, security)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	r := s.Send(t.Context(), d)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_ = server.Shutdown(ctx)
	_ = l.Close() // the server may not have begun
	<-ended
	return r
}

type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// A mail is sent over TLS, with the password only there, and names of users add no header,
// no recipient and no command.
func TestMail(t *testing.T) {
	for _, mode := range []string{"starttls", "tls", "none"} {
		p := &postbox{auth: mode != "none"}
		r := mails(t, p, func(d *alert.Delivery, _ *Sender) {
			if d.Channel.SMTP.TLS = mode; p.auth {
				d.Channel.SMTP.User, d.Channel.SMTP.Password = "me", alert.Text{Secret: "s"}
			}
		})
		if !r.Delivered || len(p.letters) != 1 || p.secure != p.auth || p.auth && p.said != "me:pass word" {
			t.Fatalf("%s: %+v %+v", mode, r, p)
		}
		if p.from != "xtimer@example.com" || strings.Join(p.to, " ") != "a@example.com b@example.com" {
			t.Errorf("%s: from %s to %q", mode, p.from, p.to)
		}
		m, err := mail.ReadMessage(strings.NewReader(p.letters[0]))
		if err != nil {
			t.Fatal(err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if err != nil || subject != "xtimer: shop/x  Bcc: evil＠example.com    hi 失败 failing" {
			t.Errorf("the subject is %q", subject)
		}
		if m.Header.Get("Bcc") != "" || m.Header.Get("Message-Id") != "<al_k7_1@example.com>" || m.Header.Get("In-Reply-To") != "" {
			t.Errorf("%v", m.Header)
		}
	}
}

// The mails of an incident are a thread.
func TestMailThread(t *testing.T) {
	p := &postbox{}
	mails(t, p, func(d *alert.Delivery, _ *Sender) { d.Message.Type, d.Message.ID = "incident.recovered", "al_k7_2" })
	m, err := mail.ReadMessage(strings.NewReader(p.letters[0]))
	if err != nil || m.Header.Get("Message-Id") != "<al_k7_2@example.com>" || m.Header.Get("References") != "<al_k7_1@example.com>" {
		t.Errorf("%v %v", m.Header, err)
	}
}

// A refusal for good is not repeated, another one is; no error has the password.
func TestMailRefused(t *testing.T) {
	code := func(n int) error { return &smtp.SMTPError{Code: n, Message: "no: pass word"} }
	user := func(d *alert.Delivery, _ *Sender) {
		d.Channel.SMTP.User, d.Channel.SMTP.Password = "me", alert.Text{Secret: "s"}
	}
	for _, x := range []struct {
		at    string
		code  int
		final bool
		edit  func(*alert.Delivery, *Sender)
	}{
		{"MAIL", 550, true, nil},
		{"MAIL", 451, false, nil},
		{"RCPT", 550, true, nil},
		{"RCPT", 452, false, nil},
		{"DATA", 554, true, nil},
		{"DATA", 451, false, nil},
		{"AUTH", 535, true, user},
		{"AUTH", 454, false, user},
	} {
		p := &postbox{refuse: map[string]error{x.at: code(x.code)}, auth: x.edit != nil}
		r := mails(t, p, x.edit)
		if r.Delivered || r.Final != x.final || r.Status != x.code || x.at == "AUTH" && strings.Contains(r.Answer+r.Error, "pass word") {
			t.Errorf("%s %d: %+v", x.at, x.code, r)
		}
	}
	missing := func(d *alert.Delivery, s *Sender) {
		user(d, s)
		d.Channel.SMTP.Password.Secret = "none"
	}
	if r := mails(t, &postbox{auth: true}, missing); r.Error != "secret_missing" || r.Final {
		t.Errorf("%+v", r)
	}
}

// A mail server is dialled only where calls may go, and trusted only with a certificate.
func TestMailForbidden(t *testing.T) {
	p := &postbox{}
	r := mails(t, p, func(d *alert.Delivery, s *Sender) {
		to := *s
		*s = *New(Config{Allowed: func(string) error { return errors.New("may not be called") }})
		s.mail.roots = to.mail.roots
	})
	if r.Delivered || !strings.Contains(r.Error, "may not be called") {
		t.Errorf("%+v", r)
	}
	for _, mode := range []string{"starttls", "tls"} {
		r = mails(t, p, func(d *alert.Delivery, s *Sender) { d.Channel.SMTP.TLS, s.mail.roots = mode, x509.NewCertPool() })
		if r.Delivered || !strings.Contains(r.Error, "certificate") {
			t.Errorf("%s: %+v", mode, r)
		}
	}
	if p.letters != nil {
		t.Errorf("%q", p.letters)
	}
}

// A server without STARTTLS gets neither a mail nor a password, and one that says nothing is
// left when the context ends.
func TestMailHostile(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var silence atomic.Bool
	s := New(Config{})
	d := &alert.Delivery{Channel: alert.Channel{Kind: "email", Lang: "en", SMTP: &alert.SMTP{
		Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: "starttls", From: "a@example.com", To: []string{"a@example.com"},
	}}}
	go func() {
		for {
			cn, err := l.Accept()
			if err != nil {
				return
			}
			if silence.Load() {
				cancel() // and nothing is said
				continue
			}
			go func() {
				defer cn.Close()
				io.WriteString(cn, "220 x ESMTP\r\n")
				b := make([]byte, 1000)
				_, _ = cn.Read(b)
				io.WriteString(cn, "250-x\r\n250 AUTH PLAIN\r\n")
				n, _ := cn.Read(b)
				if said := strings.ToUpper(string(b[:n])); strings.HasPrefix(said, "MAIL") || strings.HasPrefix(said, "AUTH") {
					t.Errorf("it is told %q", said)
				}
			}()
		}
	}()
	if r := s.Send(t.Context(), d); r.Delivered || !strings.Contains(r.Error, "STARTTLS") {
		t.Errorf("%+v", r)
	}
	d.Channel.SMTP.TLS = "none"
	silence.Store(true)
	if r := s.Send(ctx, d); r.Delivered {
		t.Errorf("%+v", r)
	}
}
