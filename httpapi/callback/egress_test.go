package callback

import (
	"net/netip"
	"testing"
)

func TestEgress(t *testing.T) {
	anything := Egress{Allow: prefixes("0.0.0.0/0", "::/0")}
	private := Egress{Deny: prefixes("10.0.0.0/8", "::ffff:172.16.0.0/108"), Allow: prefixes("10.1.0.0/16")}
	public := Egress{PublicOnly: true, Allow: prefixes("192.168.7.0/24")}
	own := Egress{OwnListeners: []netip.AddrPort{netip.MustParseAddrPort("[::]:8080"), netip.MustParseAddrPort("203.0.113.9:9090")}}

	for _, f := range []struct {
		rules Egress
		addr  string
		ok    bool
	}{
		{Egress{}, "127.0.0.1:80", true},
		{Egress{}, "[::1]:80", true},
		{Egress{}, "10.0.0.1:80", true},
		{Egress{}, "[fd12::1]:80", true},
		{Egress{}, "93.184.216.34:443", true},
		{Egress{}, "[2606:2800::1]:443", true},
		{Egress{}, "not an address", false},

		{private, "10.0.0.1:80", false},
		{private, "10.1.0.1:80", true},
		{private, "[::ffff:10.0.0.1]:80", false},
		{private, "[64:ff9b::10.0.0.1]:80", false},
		{private, "[::ffff:0:10.0.0.1]:80", false},
		{private, "[2002:a00:1::]:80", false},
		{private, "172.16.3.4:80", false},
		{private, "172.32.3.4:80", true},

		{public, "127.0.0.1:80", false},
		{public, "[::1]:80", false},
		{public, "10.0.0.1:80", false},
		{public, "172.31.255.255:80", false},
		{public, "192.168.1.1:80", false},
		{public, "192.168.7.1:80", true},
		{public, "100.64.0.1:80", false},
		{public, "198.18.0.1:80", false},
		{public, "240.0.0.1:80", false},
		{public, "[fd12::1]:80", false},
		{public, "[fec0::1]:80", false},
		{public, "[2001:db8::1]:80", false},
		{public, "[64:ff9b::192.168.1.1]:80", false},
		{public, "[64:ff9b::8.8.8.8]:80", true},
		{public, "[64:ff9b:1::8.8.8.8]:80", false},
		{public, "[2002:c0a8:101::1]:80", false},
		{public, "[::192.168.1.1]:80", false},
		{public, "8.8.8.8:80", true},
		{public, "[2606:4700::1111]:80", true},

		{own, "127.0.0.1:8080", false},
		{own, "127.9.9.9:8080", false},
		{own, "[::1]:8080", false},
		{own, "[::ffff:127.0.0.1]:8080", false},
		{own, "[2002:7f00:1::]:8080", false},
		{own, "[::ffff:0:127.0.0.1]:8080", false},
		{own, "203.0.113.9:9090", false},
		{own, "127.0.0.1:8081", true},
		{own, "203.0.113.8:8080", true},
	} {
		if err := newEgress(f.rules).check(f.addr); (err == nil) != f.ok {
			t.Errorf("%s under %+v: %v", f.addr, f.rules, err)
		}
	}

	// Nothing allows these.
	for _, addr := range []string{
		"0.0.0.0:80", "0.1.2.3:80", "[::]:80", "169.254.169.254:80", "169.254.0.1:80", "[fe80::1]:80", "[fe80::1%lo]:80",
		"[febf::1]:80", "100.100.100.200:80", "168.63.129.16:80", "192.0.0.192:80", "[fd00:ec2::254]:80", "[fd20:ce::254]:80",
		"224.0.0.1:80", "239.255.255.255:80", "[ff02::1]:80", "255.255.255.255:80",
		"[::ffff:169.254.169.254]:80", "[::ffff:0.0.0.0]:80", "[::169.254.169.254]:80", "[64:ff9b::169.254.169.254]:80",
		"[64:ff9b:1::169.254.169.254]:80", "[2002:a9fe:a9fe::]:80", "[2001:0:5ef5:79fb:0:59a:5601:5601]:80",
		"[::ffff:0:169.254.169.254]:80", "[::ffff:0:0.0.0.0]:80",
	} {
		for _, rules := range []Egress{{}, anything} {
			if newEgress(rules).check(addr) == nil {
				t.Errorf("%s passed", addr)
			}
		}
	}

	e := newEgress(Egress{})
	e.addOwn(netip.MustParseAddrPort("127.0.0.1:9"))
	if e.check("[::1]:9") == nil || e.check("127.0.0.1:10") != nil {
		t.Error("a listener added later")
	}
}

// A URL whose host is an address is judged before any call.
func TestForbids(t *testing.T) {
	cb := newCaller(t, Config{Egress: Egress{
		Deny: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, OwnListeners: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080")},
	}})
	for url, want := range map[string]bool{
		"http://0.0.0.0/": true, "http://[::]:9/x": true, "http://169.254.169.254/latest": true, "http://[fe80::1]/": true, "https://224.0.0.1?x": true,
		"http://10.1.2.3:99/": true, "http://[::ffff:10.1.2.3]/": true, "http://127.0.0.1:8080/": true,
		"http://127.0.0.1:8081/": false, "http://192.0.2.7": false, "http://[2001:db8::1]:80/": false, "http://example.com/": false, "http://1und1.example/": false, "http://10.0.0.0.example/": false,
	} {
		if err := cb.Forbids(url); (err != nil) != want {
			t.Errorf("%s: %v", url, err)
		}
	}
}
