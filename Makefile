# Go, git and make are all that is needed.

MAKEFLAGS += --no-print-directory
export PATH := $(CURDIR)/bin:$(PATH)

FUZZTIME ?= 30s
BENCH    ?= .
COUNT    ?= 1
PROBLEM   = { echo "$(1)"; exit 1; }

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Without symbols and DWARF the program is a third smaller; stack traces have their
# names and lines all the same. With them, for a debugger: make build LDFLAGS=
LDFLAGS ?= -s -w

# The version is that of the newest tag v1.2.3 and of the commits since; VERSION= sets
# another one. The time of the commit is the time of all files in a release.
VERSION ?= $(shell deploy/version)
COMMIT  ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format="%H of %cd" 2>/dev/null)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)

# Without cgo, as the releases: with it, malloc keeps more and more of what Pebble
# frees: 301 MiB in a group of 512 MiB, without it 276 (TestWaitingLane).
.PHONY: build
build: ## build bin/xtimer; with debug symbols: make build LDFLAGS=
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS) -X 'main.stampedVersion=$(VERSION)' -X 'main.stampedCommit=$(COMMIT)'" -o bin/xtimer ./cmd/xtimer

.PHONY: run
run: build ## build, and show it at work: server, receiver and a few timers; Ctrl-C ends it
	@bin/xtimer demo

.PHONY: run-cluster
run-cluster: build servers ## three nodes over MariaDB and Redis on this machine; one is killed while you watch; Ctrl-C ends it
	@bin/xtimer demo cluster

# A program with the race detector waits for a second when it ends; there are 60 of them.
test: export GORACE = atexit_sleep_ms=0

.PHONY: test
test: promtool servers mailserver chromium ## run all tests with the race detector, as .ci/run does
	go test -race -count=1 -timeout 25m ./...
	cd httpapi/client && go vet ./... && go test -race -count=1 ./...

.PHONY: test-mysql
test-mysql: servers mysqld ## run against a MySQL what else runs against MariaDB (XTIMER_MYSQLD=program: another one)
	go test -race -count=1 -timeout 25m ./tier/servertest ./tier/mysql
	go test -race -count=1 -run Import ./cmd/xtimer
	go test -count=1 -timeout 25m -run '^Test(Kill|Terminate)$$/servers|^TestLosingATier$$|^TestHour$$' -v ./bench

.PHONY: race
race: ## run the tests of one package, over and over: make race PKG=./engine/scheduler COUNT=20
	go test -race -count=$(COUNT) -timeout 60m $(or $(PKG),./...)

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (30s) each
	@for p in $$(go list ./...); do \
		targets=$$(go test -list '^Fuzz' $$p) || exit 1; \
		for f in $$(echo "$$targets" | grep '^Fuzz'); do \
			echo "$$p $$f"; \
			go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
		done; \
	done

.PHONY: bench
bench: servers ## measure into bench/results and compare with the former run: make bench BENCH=Create COUNT=6
	@mkdir -p bench/results
	@former=$$(ls -t bench/results/*.txt 2>/dev/null | head -1); \
	now=bench/results/$$(date -u +%Y%m%dT%H%M%SZ)-$$(git rev-parse --short HEAD 2>/dev/null || echo none).txt; \
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 0 ./... 2>&1 | tee $$now; \
	if grep -q '^FAIL' $$now; then rm $$now; exit 1; fi; \
	if [ -n "$$former" ]; then go tool benchstat $$former $$now; fi

.PHONY: bench-peers
bench-peers: ## measure xtimer beside asynq, River, gocron … into bench/results/peers.md (15 to 40 minutes)
	cd bench/peers && go run .

# The long trials go line by line. All that they say is also in bench/results, by
# seed, and FROM=line goes on from one: nohup make torture SEED=1795 FROM=hour &
lines = @mkdir -p bench/results; { on=; \
	for line in $(1); do \
		[ -n "$$on" ] || [ "$$line" = "$(or $(FROM),$(firstword $(1)))" ] || continue; \
		on=1; echo "SEED=$(XTIMER_SEED) FROM=$$line"; $(MAKE) $@-$$line || exit 1; \
	done; [ -n "$$on" ] || $(call PROBLEM,there is no line $(FROM): $(1)); } 2>&1 | tee -a bench/results/$@-$(XTIMER_SEED).log

torture kills: SHELL := bash
torture kills: .SHELLFLAGS := -o pipefail -c
torture kills: export XTIMER_SEED := $(or $(SEED),$(shell date +%s))

TRIAL = go test -count=1 -timeout 0 -v ./bench -run

.PHONY: torture
torture: servers ## the long trials: 100 × kill -9 and 20 × SIGTERM at 5,000 fires a second, judged as well, flow keys with 200 × kill -9, batches of 100,000 tasks a second with 50, tiers lost for a minute, 20 takeovers, 33 kills, stops and rolling restarts of three nodes, 1,000 hostile receivers, a full disk, 5,000,000 timers in 512 MiB, every failpoint, the journal's in full, seeded bugs, mute and slow targets, backlogs, a million held by a flow key, big bodies, long downtime, suspended machines, readers that do not read, a million failures at once, an hour of simulation; all drawn from SEED (the time)
	$(call lines,local servers judged flow batches memory tiers takeover nodes hostile hour journal disk service settings failpoints mutations mute backlog lane held slow bodies downtime step suspend readers failures fleet simulate)

torture-local:
	XTIMER_KILLS=$(or $(KILLS),100) XTIMER_TERMS=$(or $(TERMS),20) XTIMER_RATE=$(or $(RATE),5000) $(TRIAL) '^Test(Kill|Terminate)$$/local'
torture-servers:
	XTIMER_KILLS=$(or $(KILLS),50) XTIMER_TERMS=$(or $(TERMS),20) XTIMER_RATE=$(or $(RATE),2000) $(TRIAL) '^Test(Kill|Terminate)$$/servers'
torture-judged:
	XTIMER_KILLS=$(or $(KILLS),100) $(TRIAL) '^TestJudged$$'
torture-flow:
	XTIMER_KILLS=$(or $(KILLS),200) XTIMER_KEYS=$(or $(KEYS),100000) XTIMER_RATE=$(or $(RATE),2000) $(TRIAL) '^TestFlows$$'
torture-batches:
	XTIMER_KILLS=$(or $(KILLS),50) XTIMER_RATE=$(or $(RATE),100000) $(TRIAL) '^TestKillBatches$$'
torture-memory:
	XTIMER_TIMERS=5000000 XTIMER_MEMORY=512 $(TRIAL) '^TestMemoryLimit$$'
torture-tiers:
	XTIMER_AWAY=60 XTIMER_RATE=1000 $(TRIAL) '^TestLosingATier$$'
torture-takeover:
	XTIMER_TAKEOVERS=$(or $(TAKEOVERS),20) $(TRIAL) '^TestTakeover'
torture-nodes:
	XTIMER_NODE_FAULTS=$(or $(FAULTS),33) XTIMER_NODE_KILLS=$(or $(KILLS),100) $(TRIAL) '^TestNode'
torture-hostile:
	XTIMER_HOSTILE=120 XTIMER_FULL=60 $(TRIAL) '^Test(ThousandHostileReceivers|FullFileSystem)$$'
torture-hour:
	XTIMER_HOUR=90s $(TRIAL) '^TestHour$$'
torture-journal:
	XTIMER_TEST_LONG=1 go test -count=1 -timeout 0 ./wal
torture-disk:
	go test -run '^Test(PowerLoss|DiskErrors|BitFlips)$$' -count=1 -timeout 0 ./tier/local -every
torture-service:
	go test -run '^TestDiskErrors$$' -count=1 -timeout 0 -v ./bench/simulator -every
torture-settings:
	XTIMER_SETTINGS=$(or $(SETTINGS),300) go test -run '^TestSettings$$' -count=1 -timeout 0 -v ./bench/simulator
torture-failpoints:
	XTIMER_FAILPOINTS=$(or $(FAILPOINTS),10) $(TRIAL) '^TestFailpoints$$'
torture-mutations:
	XTIMER_SEED= XTIMER_MUTATIONS=1 go test -run '^TestMutations$$' -count=1 -timeout 0 -v ./bench/simulator
torture-fleet:
	XTIMER_SIMULATE=$(or $(SIMULATE),1h) go test -run '^TestNodes$$' -count=1 -timeout 0 -v ./bench/simulator
torture-simulate:
	XTIMER_SIMULATE=$(or $(SIMULATE),1h) go test -run '^TestSimulate$$' -count=1 -timeout 0 -v ./bench/simulator

# The trials of bounds, which hold whatever targets, callers, clocks and outages do.
BOUND = XTIMER_TRIALS=full $(TRIAL)

torture-mute:
	$(BOUND) '^TestMuteNeighbours$$'
torture-backlog:
	$(BOUND) '^TestBacklogBehindKill$$'
torture-lane:
	$(BOUND) '^TestWaitingLane$$'
torture-held:
	$(BOUND) '^TestHeldAtOneInstant$$'
torture-slow:
	$(BOUND) '^TestSlowTargets$$'
torture-bodies:
	$(BOUND) '^TestBigBodies$$'
torture-downtime:
	$(BOUND) '^TestLongDowntime$$'
torture-step:
	$(BOUND) '^TestClockStepForward$$'
torture-suspend:
	$(BOUND) '^TestSuspended$$'
torture-readers:
	$(BOUND) '^TestSilentReaders$$'
torture-failures:
	XTIMER_FAILURES=$(or $(FAILURES),1000000) $(TRIAL) '^TestFailures$$'

# One hour of faults: each of eight draws has its part of NEMESIS minutes.
.PHONY: torture-cluster
torture-cluster: servers ## an hour of faults for three nodes, their MariaDB, Redis and links, in eight parts, all judged; drawn from SEED (the time)
	@mkdir -p bench/results; for part in 1 2 3 4 5 6 7 8; do \
		seed=$$(( $(or $(SEED),$(shell date +%s)) + part )); echo "XTIMER_SEED=$$seed"; \
		XTIMER_SEED=$$seed XTIMER_NEMESIS=$$(( $(or $(NEMESIS),60) * 60 / 8 ))s $(TRIAL) '^TestNemesis$$' || exit 1; \
	done 2>&1 | tee -a bench/results/$@-$(or $(SEED),$(shell date +%s)).log

.PHONY: trials
trials: ## the trials of bounds in their short forms: mute and slow targets, backlogs, big bodies, long downtime … (some minutes)
	XTIMER_TRIALS=1 $(TRIAL) '^Test(MuteNeighbours|BacklogBehindKill|WaitingLane|HeldAtOneInstant|SlowTargets|BigBodies|LongDowntime|ClockStepForward|Suspended|SilentReaders)$$'

.PHONY: kills
kills: servers ## 1,000 × kill -9 at 1,000, 5,000 and 20,000 due a second and 200 over MariaDB and Redis, all judged by bench/checker; drawn from SEED (the time)
	$(call lines,1000 5000 20000 servers)

kills-1000:
	XTIMER_KILLS=$(or $(KILLS),334) XTIMER_RATE=1000 $(TRIAL) '^TestJudged$$/local'
kills-5000 kills-20000:
	XTIMER_KILLS=$(or $(KILLS),333) XTIMER_RATE=$(@:kills-%=%) $(TRIAL) '^TestJudged$$/local'
kills-servers:
	XTIMER_KILLS=$(or $(KILLS),200) XTIMER_RATE=2000 $(TRIAL) '^TestJudged$$/servers'

.PHONY: soak
soak: ## fire for an hour and look at what grows: memory, goroutines (SOAK=seconds, RATE=1000)
	XTIMER_SOAK=$(or $(SOAK),3600) XTIMER_RATE=$(or $(RATE),1000) go test -run '^TestSoak$$' -count=1 -timeout 0 -v ./bench

.PHONY: lint
lint: ## gofumpt, vet, staticcheck
	@out=$$(go tool gofumpt -l .) && [ -z "$$out" ] || $(call PROBLEM,gofumpt would change: $$out)
	go vet ./... && go vet -tags pictures ./httpapi/console
	go tool staticcheck ./...

.PHONY: check
check: lint ## lint, and: go.mod is tidy, no function is dead
	go mod tidy -diff
	@out=$$(go tool deadcode -test ./...) && [ -z "$$out" ] || $(call PROBLEM,$$out)

# The tests of the shared tiers start servers of their own (tier/servertest).
# The programs are Debian's, from packages without a service: nothing is started,
# now or at boot. redis-tools has the server as redis-check-rdb.
SERVERS = mariadb-server-core mariadb-client-core redis-tools

.PHONY: servers
servers:
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin"; \
	found() { \
		for p in mariadbd mariadb-install-db mariadb redis-cli; do command -v $$p || return 1; done; \
		command -v redis-server || command -v redis-check-rdb; \
	}; \
	install() { \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --no-remove \
			-o DPkg::Lock::Timeout=300 $(SERVERS); \
	}; \
	found >/dev/null && exit 0; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || \
		$(call PROBLEM,MariaDB and Redis are missing: apt-get install --no-install-recommends $(SERVERS)); \
	log=$$(mktemp) && trap 'rm -f "$$log"' EXIT; \
	{ install || { apt-get update -q && install; }; } >"$$log" 2>&1 </dev/null && found >/dev/null || \
		{ tail -5 "$$log"; exit 1; }; \
	echo "$(SERVERS) were installed"

# The mail server of another project, which reads a mail in one test. Without it the test is
# skipped: the others have a mail server of their own.
.PHONY: mailserver
mailserver:
	@/usr/bin/python3 -c 'import aiosmtpd' 2>/dev/null && exit 0; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --no-remove -o DPkg::Lock::Timeout=300 \
			python3-aiosmtpd >/dev/null 2>&1 </dev/null && echo "python3-aiosmtpd was installed" || \
		echo "python3-aiosmtpd is missing: TestMailOtherServer is skipped"

# MySQL is in Debian's unstable only. It is fetched from there with all that it
# links, down to the C library, by an apt that knows of nothing else, and unpacked
# into bin/mysql: nothing is installed. It runs by the loader that came with it.
XTIMER_MYSQLD ?= $(CURDIR)/bin/mysql/mysqld
test-mysql: export XTIMER_MYSQLD := $(XTIMER_MYSQLD)

.PHONY: mysqld
mysqld:
	@[ -x "$(XTIMER_MYSQLD)" ] && exit 0; \
	to="$(CURDIR)/bin/mysql"; mkdir -p bin && tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && cd "$$tmp" || exit 1; \
	apt() { \
		apt-get -q -y -o Dir::Etc::SourceList="$$tmp/sources" -o Dir::Etc::SourceParts=/dev/null -o Dir::State="$$tmp" \
			-o Dir::State::status="$$tmp/status" -o Dir::Cache="$$tmp" -o APT::Sandbox::User= --no-install-recommends "$$@"; \
	}; \
	fetch() { \
		mkdir -p lists/partial archives/partial && : >status && \
		site=$$(apt-get indextargets --format '$$(SITE)' | grep -v security | head -1) && \
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $$site sid main" >sources && \
		apt update && apt install --download-only mysql-server-core && \
		for deb in archives/*.deb; do dpkg-deb -x "$$deb" . || return 1; done && \
		rm -rf "$$to" && mkdir -p "$$to/share" && cp -a usr/lib usr/sbin "$$to" && cp -a usr/share/mysql "$$to/share" && \
		set -- "$$to"/lib/*/ld-linux* && \
		printf '#!/bin/sh\nexec %s --library-path %s:%s %s "$$@" --basedir=%s\n' \
			"$$1" "$${1%/*}" "$$to/lib/mysql/private" "$$to/sbin/mysqld" "$$to" >"$$to/mysqld" && \
		chmod 755 "$$to/mysqld" && "$$to/mysqld" --no-defaults --version; \
	}; \
	fetch >log 2>&1 || { tail -5 log; rm -f "$$to/mysqld"; $(call PROBLEM,MySQL cannot be fetched here: name a mysqld with XTIMER_MYSQLD); }; \
	tail -1 log; echo "it was fetched into bin/mysql"

# The console's tests drive a real browser. Its headless shell takes half of the processor time
# that a whole browser does; where the shell cannot be had, any Chromium will do.
.PHONY: chromium
chromium:
	@found() { command -v chromium || command -v chromium-browser || command -v google-chrome; }; \
	root() { [ "$$(id -u)" = 0 ] && command -v apt-get; }; \
	install() { \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --no-remove \
			-o DPkg::Lock::Timeout=300 chromium-headless-shell; \
	}; \
	command -v chromium-headless-shell >/dev/null && exit 0; \
	root >/dev/null || { found >/dev/null && exit 0; \
		$(call PROBLEM,Chromium is missing: apt-get install --no-install-recommends chromium-headless-shell); }; \
	log=$$(mktemp) && trap 'rm -f "$$log"' EXIT; \
	{ install || found || { apt-get update -q && install; }; } >"$$log" 2>&1 </dev/null || \
		{ tail -5 "$$log"; exit 1; }; \
	command -v chromium-headless-shell >/dev/null && echo "chromium-headless-shell was installed" || true

# What a release is made with lies in a Go module of its own.
TARGETS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64

.PHONY: release
release: ## make dist/: archives, packages, an image, lists of components, checksums; VERSION= sets the version
	@case "$(VERSION)" in \
		"") $(call PROBLEM,this is no git checkout: give VERSION= and SOURCE_DATE_EPOCH=) ;; \
		*dirty) $(call PROBLEM,the checkout has changes: a release is made of a commit) ;; \
	esac
	cd deploy/release && go run . -version "$(VERSION)" -commit "$(COMMIT)" -date "$(SOURCE_DATE_EPOCH)" \
		-source ../.. -out ../../dist -targets "$(TARGETS)"

# The version is that of the client's tag, httpapi/client/v1.2.3.
.PHONY: module
module: ## give the Go modules their public paths: make module MODULE=github.com/you/xtimer VERSION=v1.2.3
	@[ -n "$(MODULE)" ] || $(call PROBLEM,name the path: make module MODULE=github.com/you/xtimer VERSION=v1.2.3)
	cd deploy/release && go run ./module -source ../.. -path "$(MODULE)" $(if $(findstring command,$(origin VERSION)),-version "$(VERSION)")

# What the tests of a release need, as packages of Debian; the tests run as root.
TRIERS = debootstrap file lintian openssl qemu-user-static rpm skopeo systemd

.PHONY: triers
triers:
	@found() { dpkg-query -W $(TRIERS); }; \
	install() { \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --no-remove \
			-o DPkg::Lock::Timeout=300 $(TRIERS); \
	}; \
	found >/dev/null 2>&1 && exit 0; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || \
		$(call PROBLEM,the tests of a release run on Debian as root: apt-get install --no-install-recommends $(TRIERS)); \
	log=$$(mktemp) && trap 'rm -f "$$log"' EXIT; \
	{ install || { apt-get update -q && install; }; } >"$$log" 2>&1 </dev/null && found >/dev/null || \
		{ tail -5 "$$log"; exit 1; }; \
	echo "$(TRIERS) were installed"

.PHONY: test-release
test-release: triers release ## make the release twice, and start and use each file of it (30 minutes)
	cd deploy/release && go test -count=1 -timeout 90m -v . -dist ../../dist && go test -count=1 -timeout 30m -v ./module

.PHONY: screenshots
screenshots: chromium ## make docs/pictures anew, of a server that has been at work for ten minutes
	XTIMER_PICTURES=10m go test -tags pictures -run '^TestPictures$$' -count=1 -timeout 0 -v ./httpapi/console

.PHONY: console-assets
console-assets: ## bring the console's scripts from npm, as httpapi/console/assets/package-lock.json pins them
	cd httpapi/console/assets && npm ci --ignore-scripts --no-audit --no-fund && \
		cp node_modules/htmx.org/dist/htmx.min.js htmx.min.js && cp node_modules/htmx.org/LICENSE htmx.LICENSE && \
		cp node_modules/uplot/dist/uPlot.iife.min.js uplot.min.js && cp node_modules/uplot/dist/uPlot.min.css uplot.min.css && \
		cp node_modules/uplot/LICENSE uplot.LICENSE && \
		cp node_modules/axe-core/axe.min.js ../testdata/axe.min.js && cp node_modules/axe-core/LICENSE ../testdata/axe.LICENSE && \
		rm -rf node_modules

# promtool checks the alert rules and the page of metrics. It is fetched as
# Debian's package and only unpacked into bin, so that nothing is installed and
# no service starts. Where that cannot be, those checks are skipped.
.PHONY: promtool
promtool:
	@command -v promtool >/dev/null 2>&1 || { \
		tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && mkdir -p bin && cd "$$tmp" && chmod 755 . && \
		{ apt-get download prometheus || { apt-get update -q && apt-get download prometheus; }; } >log 2>&1 && \
		dpkg-deb -x prometheus_*.deb . && cp usr/bin/promtool "$(CURDIR)/bin/" && \
		echo "promtool was fetched into bin"; \
	} || echo "promtool is missing and cannot be fetched here: the checks that need it are skipped"
