package servertest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const orphanEnv = "XTIMER_SERVERTEST_ORPHAN"

func TestMain(m *testing.M) {
	code := Main(m)
	if s := shared.mariaDB; s != nil {
		if _, err := os.Stat(s.dir); err == nil {
			fmt.Println("the shared MariaDB left its folder", s.dir)
			code = 1
		}
	}
	os.Exit(code)
}

// TestMariaDBKeepsItsData over a kill, a stop and a pause.
func TestMariaDBKeepsItsData(t *testing.T) {
	s := MariaDB(t, "--max-connections=77")
	addr, dsn := s.Addr(), s.DSN("a")
	if want := "xtimer:secret@tcp(" + addr + ")/a"; dsn != want {
		t.Errorf("dsn %s, want %s", dsn, want)
	}
	s.Do("CREATE TABLE a.t (x INT PRIMARY KEY); INSERT INTO a.t VALUES (1)")
	s.Kill()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Error("a killed server answers")
	}
	s.Start()
	s.Do("INSERT INTO a.t VALUES (2)")
	s.Stop()
	s.Start()
	if got := s.Do("SELECT x FROM a.t ORDER BY x"); got != "1\n2\n" {
		t.Errorf("rows %q after two restarts", got)
	}
	if got := s.Do("SELECT @@max_connections, @@innodb_flush_log_at_trx_commit, @@log_bin"); got != "77\t1\t0\n" {
		t.Errorf("settings %q", got)
	}
	if s.Addr() != addr {
		t.Errorf("address %s, was %s", s.Addr(), addr)
	}
}

// TestUserOfTheDSN has a password and sees its databases only.
func TestUserOfTheDSN(t *testing.T) {
	s := SharedMariaDB(t)
	s.DSN("mine")
	s.Do("CREATE DATABASE other")
	port := fmt.Sprint(s.port)
	out, err := exec.Command(find(t, "mariadb"), "--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port="+port,
		"--user="+user, "--password="+password, "--skip-column-names", "--execute=SHOW DATABASES").CombinedOutput()
	if got := strings.Fields(string(out)); err != nil || !slices.Contains(got, "mine") || slices.Contains(got, "other") {
		t.Errorf("%v: it sees %s", err, got)
	}
}

func TestSharedMariaDB(t *testing.T) {
	a, b := SharedMariaDB(t), SharedMariaDB(t)
	if a.Addr() != b.Addr() {
		t.Errorf("two servers, %s and %s", a.Addr(), b.Addr())
	}
	if x, y := a.DSN(""), b.DSN(""); x == y {
		t.Errorf("one database for two: %s", x)
	}
}

func TestRedisKeepsItsData(t *testing.T) {
	s := Redis(t)
	s.Do("SET a 1")
	s.Kill()
	s.Start()
	s.Do("SET b 2")
	s.Stop()
	s.Start()
	if got := strings.Join(strings.Fields(s.Do("MGET a b")), " "); got != "1 2" {
		t.Errorf("values %q after two restarts", got)
	}
	empty := Redis(t, "--appendonly", "no")
	empty.Do("SET a 1")
	empty.Kill()
	empty.Start()
	if got := strings.TrimSpace(empty.Do("GET a")); got != "" {
		t.Errorf("value %q in a server without a file", got)
	}
}

// TestPause: a paused server accepts and does not answer; after Resume it does.
func TestPause(t *testing.T) {
	s := Redis(t)
	s.Pause()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := lines(c)
	fmt.Fprint(c, "PING\r\n")
	select {
	case got := <-answers:
		t.Errorf("a paused server says %q", got)
	case <-time.After(100 * time.Millisecond):
	}
	s.Resume()
	if got := next(t, answers); got != "+PONG" {
		t.Errorf("after Resume it says %q", got)
	}
	s.Pause()
	s.Stop()
	s.Start()
	s.Pause() // and the test ends it all the same
}

func TestRedisCluster(t *testing.T) {
	nodes := RedisCluster(t)
	for _, s := range nodes {
		if got := s.Do("CLUSTER SLOTS"); strings.Count(got, "127.0.0.1") != 3 || !strings.Contains(got, "16383") {
			t.Errorf("slots as %s sees them: %s", s.Addr(), got)
		}
	}
}

// TestServersEndWithTheTest, and give their ports back.
func TestServersEndWithTheTest(t *testing.T) {
	var addrs []string
	t.Run("servers", func(t *testing.T) {
		for _, s := range []*Server{MariaDB(t), Redis(t)} {
			addrs = append(addrs, s.Addr())
		}
	})
	for _, addr := range addrs {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
	}
}

// TestServersEndWithTheProcess: a test process that is killed leaves none.
func TestServersEndWithTheProcess(t *testing.T) {
	if os.Getenv(orphanEnv) != "" {
		fmt.Printf("pids %d %d\n", MariaDB(t).cmd.Process.Pid, Redis(t).cmd.Process.Pid)
		select {} // until it is killed
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestServersEndWithTheProcess$", "-test.timeout=120s")
	tmp := t.TempDir()
	cmd.Env = append(os.Environ(), orphanEnv+"=1", "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	var pids [2]int
	for r := bufio.NewReader(out); pids[0] == 0; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscanf(line, "pids %d %d", &pids[0], &pids[1])
	}
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range pids {
		for deadline := time.Now().Add(patience); isAlive(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d outlives its test", pid)
			}
		}
	}
}

// isAlive: there is such a process, and it is not only waiting to be reaped.
func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && syscall.Kill(pid, 0) == nil && !strings.Contains(string(stat), ") Z ")
}

// TestMissingProgram fails, does not skip, and says in one line what to do.
func TestMissingProgram(t *testing.T) {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		find(r, "no-such-server")
	}()
	<-done
	if !strings.Contains(r.fatal, "no-such-server is not installed") || !strings.Contains(r.fatal, "apt-get install") || strings.Contains(r.fatal, "\n") {
		t.Errorf("it says %q", r.fatal)
	}
}
