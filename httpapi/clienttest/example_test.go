package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"xtimer/httpapi"
	"xtimer/httpapi/client"
)

// local is a client of a real server that runs within the example. Yours is
//
//	client.New("http://127.0.0.1:8080", client.WithToken(os.Getenv("XTIMER_TOKEN")))
func local() (c *client.Client, stop func()) {
	dir, err := os.MkdirTemp("", "xtimer-example-")
	if err != nil {
		log.Fatal(err)
	}
	e, stopEngine, err := startEngine(dir)
	if err != nil {
		log.Fatal(err)
	}
	url, stopServer, err := startServer(e, "127.0.0.1:0", httpapi.ServerConfig{})
	if err != nil {
		log.Fatal(err)
	}
	transport := &http.Transport{}
	if c, err = client.New(url, client.WithHTTPClient(&http.Client{Transport: transport})); err != nil {
		log.Fatal(err)
	}
	for c.Ready(context.Background()) != nil {
		time.Sleep(time.Millisecond)
	}
	return c, func() {
		transport.CloseIdleConnections()
		stopServer()
		if err := errors.Join(stopEngine(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

// A timer that calls once, half an hour from now, unless it is cancelled first.
func Example() {
	c, stop := local()
	defer stop()
	ctx := context.Background()
	put, err := c.Put(ctx, client.Definition{
		App: "billing", Name: "order-1842-expire",
		Schedule: client.Schedule{Delay: new(30 * time.Minute)},
		Callback: client.Callback{URL: "https://orders.example.com/expire", Body: map[string]int{"order": 1842}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(put.Result, put.Timer.Status)

	// The order was paid: no call is made any more. It would be in_flight if one
	// were being made just now.
	result, err := c.DeleteByName(ctx, "billing", "order-1842-expire")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result)
	// Output:
	// created enabled
	// cancelled
}

// Both sides: the server calls, and the receiver handles each task once. It
// fails at first here, so that the server tries again.
func ExampleReceiver() {
	done := make(chan struct{})
	receiver, err := client.NewReceiver(func(_ context.Context, call *client.Call) error {
		fmt.Println(call.App, call.Name, "attempt", call.Attempt)
		if call.Attempt == 1 {
			return errors.New("the database is away")
		}
		close(done)
		return nil
	}, client.ReceiverConfig{Unsigned: true}) // or Secrets, where the app has some
	if err != nil {
		log.Fatal(err)
	}
	target := httptest.NewServer(receiver)
	defer target.Close()

	c, stop := local()
	defer stop()
	_, err = c.Create(context.Background(), client.Definition{
		App: "billing", Name: "invoice",
		Schedule: client.Schedule{At: time.Now().Add(10 * time.Millisecond)},
		Callback: client.Callback{URL: target.URL},
		Retry:    client.Retry{Backoff: 10 * time.Millisecond},
	})
	if err != nil {
		log.Fatal(err)
	}
	<-done
	// Output:
	// billing invoice attempt 1
	// billing invoice attempt 2
}

// What is wrong with a timer, field by field.
func ExampleError() {
	c, stop := local()
	defer stop()
	_, err := c.Put(context.Background(), client.Definition{
		App: "billing", Name: "report",
		Schedule: client.Schedule{Cron: "0 9 * * *", TimeZone: "Mars/Olympus"},
		Callback: client.Callback{URL: "ftp://example.com"},
	})
	var e *client.Error
	if errors.As(err, &e) {
		fmt.Println(e.Status, e.Code)
		for _, f := range e.Fields {
			fmt.Println(f.Field)
		}
	}
	// Output:
	// 422 invalid_timer
	// schedule.time_zone
	// callback.url
}

// All timers of an app, page by page.
func ExampleClient_Timers() {
	c, stop := local()
	defer stop()
	ctx := context.Background()
	for _, name := range []string{"a", "b"} {
		_, err := c.Put(ctx, client.Definition{
			App: "ops", Name: name, Schedule: client.Schedule{Every: time.Hour}, Callback: client.Callback{URL: "https://example.com/"},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	for timer, err := range c.Timers(ctx, client.TimerFilter{App: "ops"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(timer.Name, timer.Schedule.Every)
	}
	// Output:
	// a 1h0m0s
	// b 1h0m0s
}

// Tasks as they end; a broken stream goes on by itself, and says that it broke.
func ExampleClient_Stream() {
	c, stop := local()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	for task, err := range c.Stream(ctx, client.TaskFilter{App: "billing"}) {
		var gap *client.Gap
		var broken *client.Break
		switch {
		case errors.As(err, &gap):
			fmt.Println(gap) // what history has of it is in c.Tasks
		case errors.As(err, &broken):
			fmt.Println(broken) // what ends meanwhile follows
		case err != nil:
			fmt.Println("the end:", err)
		default:
			fmt.Println(task.Name, task.Status)
		}
	}
	// Output: the end: context deadline exceeded
}
