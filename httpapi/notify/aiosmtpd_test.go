package notify

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"xtimer/engine/alert"
)

// otherServer is Debian's python3-aiosmtpd; it prints its port, and what it takes.
const otherServer = `
import asyncio, json, sys
from email import message_from_bytes, policy
from aiosmtpd.smtp import SMTP
class Handler:
    async def handle_DATA(self, server, session, envelope):
        m = message_from_bytes(envelope.content, policy=policy.default)
        print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos, "defects": [str(d) for d in m.defects],
            "headers": m.keys(), "subject": m["subject"], "text": m.get_content()}), flush=True)
        return "250 taken"
async def main():
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(Handler()), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
`

// Another mail server reads the mail as it is meant.
func TestMailOtherServer(t *testing.T) {
	if exec.Command("/usr/bin/python3", "-c", "import aiosmtpd").Run() != nil {
		t.Skip("python3-aiosmtpd is not installed")
	}
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", otherServer)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	lines.Scan()
	port, err := strconv.Atoi(lines.Text())
	if err != nil {
		t.Fatal(err)
	}
	d := &alert.Delivery{Channel: alert.Channel{Kind: "email", Lang: "zh", SMTP: &alert.SMTP{
		Host: "127.0.0.1", Port: port, TLS: "none", From: "定时 <xtimer@example.com>", To: []string{"a@example.com"},
	}}}
	d.Message = alert.Message{Type: "incident.opened", ID: "al_k7_1", Incident: &alert.Incident{
		ID: "k7", Rule: "r\r\n.\r\nMAIL FROM:<x@x>", App: "shop", By: "订单\r\nBcc: evil@example.com", Severity: "critical", Count: 3,
	}}
	if r := New(Config{}).Send(t.Context(), d); !r.Delivered {
		t.Fatalf("%+v", r)
	}
	var got struct {
		From, Subject, Text  string
		To, Defects, Headers []string
	}
	if lines.Scan(); json.Unmarshal(lines.Bytes(), &got) != nil {
		t.Fatal(lines.Text())
	}
	if got.From != "xtimer@example.com" || strings.Join(got.To, " ") != "a@example.com" || len(got.Defects) != 0 || strings.Contains(strings.ToLower(strings.Join(got.Headers, " ")), "bcc") {
		t.Errorf("%+v", got)
	}
	if strings.TrimSpace(got.Subject) != "xtimer: shop/订单  Bcc: evil＠example.com 出现失败" || !strings.Contains(got.Text, "规则: r  .  MAIL FROM:‹x＠x› (critical)\r\n失败次数: 3") {
		t.Errorf("%q %q", got.Subject, got.Text)
	}
}
