// The stock franz-go client behind the line protocol of PROTOCOL.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type config struct {
	Role, Bootstrap, Topic, Prefix, Acks, Group, Assignor, Protocol, Pattern string
	ClientID                                                                 string `json:"client_id"`
	InstanceID                                                               string `json:"instance_id"`
	Count, Partitions                                                        int
	IntervalMs                                                               int `json:"interval_ms"`
	Topics                                                                   []string
	SessionTimeoutMs                                                         int `json:"session_timeout_ms"`
	HeartbeatMs                                                              int `json:"heartbeat_ms"`
	MetadataMaxAgeMs                                                         int `json:"metadata_max_age_ms"`
	Sasl                                                                     *struct{ Mechanism, Username, Password string }
}

var output sync.Mutex

func say(event string, fields map[string]any) {
	line := map[string]any{"event": event, "at": time.Now().UnixMicro()}
	for key, value := range fields {
		line[key] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(text))
}

func fail(err error) {
	say("error", map[string]any{"message": err.Error()})
	os.Exit(1)
}

func common(c config) []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(c.Bootstrap, ",")...),
		kgo.ClientID(c.ClientID),
		kgo.RetryTimeout(60 * time.Second),
	}
	if c.MetadataMaxAgeMs > 0 {
		age := time.Duration(c.MetadataMaxAgeMs) * time.Millisecond
		options = append(options, kgo.MetadataMaxAge(age), kgo.MetadataMinAge(age/2))
	}
	if c.Sasl != nil {
		switch c.Sasl.Mechanism {
		case "PLAIN":
			options = append(options, kgo.SASL(plain.Auth{User: c.Sasl.Username, Pass: c.Sasl.Password}.AsMechanism()))
		case "SCRAM-SHA-256":
			options = append(options, kgo.SASL(scram.Auth{User: c.Sasl.Username, Pass: c.Sasl.Password}.AsSha256Mechanism()))
		case "SCRAM-SHA-512":
			options = append(options, kgo.SASL(scram.Auth{User: c.Sasl.Username, Pass: c.Sasl.Password}.AsSha512Mechanism()))
		default:
			fail(fmt.Errorf("mechanism %s is not tried with this client", c.Sasl.Mechanism))
		}
	}
	return options
}

func produce(c config) {
	options := append(common(c), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5*time.Millisecond),
		kgo.RecordDeliveryTimeout(60*time.Second))
	switch c.Acks {
	case "0":
		options = append(options, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	case "1":
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		fail(err)
	}
	defer client.Close()
	var records []*kgo.Record
	for number := range c.Count {
		records = append(records, &kgo.Record{Topic: c.Topic, Partition: int32(number % max(c.Partitions, 1)),
			Value: fmt.Appendf(nil, "%s-%d", c.Prefix, number)})
	}
	if err := client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		fail(err)
	}
	say("produced", map[string]any{"count": c.Count})
}

// Sends a value after the other until it is told to close, and tells of each that is acknowledged.
func steady(c config) {
	client, err := kgo.NewClient(append(common(c), kgo.ProducerLinger(5*time.Millisecond))...)
	if err != nil {
		fail(err)
	}
	told := func(r *kgo.Record, err error) {
		if err != nil {
			say("error", map[string]any{"message": err.Error()})
			return
		}
		say("sent", map[string]any{"partition": fmt.Sprintf("%s-%d", r.Topic, r.Partition), "offset": r.Offset})
	}
	ctx := closeOnCommand()
	pace := time.NewTicker(time.Duration(c.IntervalMs) * time.Millisecond)
	for number := 0; ctx.Err() == nil; number++ {
		value := fmt.Appendf(nil, "%s-%d", c.Prefix, number)
		client.Produce(context.Background(), &kgo.Record{Topic: c.Topic, Key: value, Value: value}, told)
		select {
		case <-ctx.Done():
		case <-pace.C:
		}
	}
	limit, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := client.Flush(limit); err != nil {
		say("error", map[string]any{"message": err.Error()})
	}
	client.Close()
	say("closed", nil)
}

// A context that ends when the scenario says `close`.
func closeOnCommand() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		input := bufio.NewScanner(os.Stdin)
		for input.Scan() {
			if input.Text() == "close" {
				cancel()
			}
		}
	}()
	return ctx
}

// The partitions that this member owns, kept by the callbacks.
type owned struct {
	sync.Mutex
	names map[string]bool
}

func (o *owned) sorted() []string {
	names := make([]string, 0, len(o.names))
	for name := range o.names {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (o *owned) assigned(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	o.Lock()
	defer o.Unlock()
	for _, name := range names(topics) {
		o.names[name] = true
	}
	say("assigned", map[string]any{"partitions": o.sorted()})
}

func (o *owned) revoked(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	o.remove(topics, map[string]any{"partitions": names(topics)})
}

func (o *owned) lost(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	o.remove(topics, map[string]any{"partitions": names(topics), "lost": true})
}

func (o *owned) remove(topics map[string][]int32, told map[string]any) {
	o.Lock()
	defer o.Unlock()
	for _, name := range names(topics) {
		delete(o.names, name)
	}
	say("revoked", told)
}

func names(topics map[string][]int32) []string {
	all := []string{}
	for topic, partitions := range topics {
		for _, partition := range partitions {
			all = append(all, fmt.Sprintf("%s-%d", topic, partition))
		}
	}
	sort.Strings(all)
	return all
}

func consume(c config) {
	balancers := map[string]kgo.GroupBalancer{"": kgo.RangeBalancer(), "range": kgo.RangeBalancer(),
		"roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer()}
	have := &owned{names: map[string]bool{}}
	options := append(common(c), kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Topics...), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.Balancers(balancers[c.Assignor]),
		kgo.OnPartitionsAssigned(have.assigned), kgo.OnPartitionsRevoked(have.revoked), kgo.OnPartitionsLost(have.lost),
		kgo.SessionTimeout(time.Duration(c.SessionTimeoutMs)*time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(c.HeartbeatMs)*time.Millisecond), kgo.BlockRebalanceOnPoll())
	if c.InstanceID != "" {
		options = append(options, kgo.InstanceID(c.InstanceID))
	}
	if c.Pattern != "" {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(c.Pattern))
	}
	if c.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		fail(err)
	}
	ctx := closeOnCommand()
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 50)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				say("error", map[string]any{"message": err.Error()})
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			say("message", map[string]any{"partition": fmt.Sprintf("%s-%d", r.Topic, r.Partition), "offset": r.Offset,
				"value": string(r.Value)})
		})
		commit(client, fetches.Records())
		client.AllowRebalance()
	}
	// In the consumer protocol a static member says that it goes for a while.
	if c.InstanceID == "" || c.Protocol == "consumer" {
		client.LeaveGroup()
	}
	client.CloseAllowingRebalance()
	say("closed", nil)
}

func commit(client *kgo.Client, records []*kgo.Record) {
	if len(records) == 0 {
		return
	}
	limit, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	began := time.Now().UnixMicro()
	if err := client.CommitRecords(limit, records...); err != nil {
		// The partitions are somebody else's now, or soon: their records come again.
		if errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.UnknownMemberID) ||
			errors.Is(err, kerr.RebalanceInProgress) || errors.Is(err, kerr.StaleMemberEpoch) ||
			errors.Is(err, kerr.FencedMemberEpoch) {
			return
		}
		say("error", map[string]any{"message": "commit: " + err.Error()})
		return
	}
	offsets := map[string]int64{}
	for _, r := range records {
		offsets[fmt.Sprintf("%s-%d", r.Topic, r.Partition)] = r.Offset + 1
	}
	say("committed", map[string]any{"began": began, "offsets": offsets})
}

func main() {
	c := config{SessionTimeoutMs: 10000, HeartbeatMs: 500}
	if err := json.Unmarshal([]byte(os.Args[1]), &c); err != nil {
		fail(err)
	}
	switch c.Role {
	case "producer":
		produce(c)
	case "steady":
		steady(c)
	default:
		consume(c)
	}
}
