package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	options := HoldfastOptions{Address: os.Args[2], Timeout: 20 * time.Second, PoolSize: 2}
	if os.Args[1] == "secure" {
		secure(options)
		return
	}
	if os.Args[1] == "silent" {
		silent(options)
		return
	}
	options.Space = os.Args[1]
	client, err := HoldfastConnect(options)
	must(err)
	defer client.Close()
	must(client.Ping())
	map[string]func(*HoldfastClient){
		"all": all, "loaded": loaded, "checks": checks, "versions": versions, "batches": batches,
	}[os.Args[1]](client)
}

func all(client *HoldfastClient) {
	hits, ratio, open := uint64(18446744073709551615), 2.5, true
	first := NewThing()
	first.Name, first.Hits, first.Ratio, first.Open = "first", &hits, &ratio, &open
	first.LastSeen = time.UnixMilli(1577934245678).UTC()
	first.Raw = []byte{0, 255}
	first.Tags = map[string]struct{}{"a": {}, "b": {}}
	first.Notes = []string{"x", "y"}
	first.Sizes = map[string]int64{"l": 3}
	first.Misc = []interface{}{int64(1), "two", nil}
	second := NewThing()
	second.Name = "second"
	ids, err := HoldfastPut(client, 0, first, second)
	must(err)
	fmt.Println(ids, first.Id)

	found, err := HoldfastGet[Thing](client, "first|", "nobody", "second|")
	must(err)
	one, two := found[0], found[1]
	fmt.Println(len(found), one.Name, *one.Hits, *one.Ratio, *one.Open, one.LastSeen.UnixMilli())
	fmt.Println(one.Raw, len(one.Tags), one.Notes, one.Sizes, one.Misc)
	fmt.Println(two.Id, two.Rank, two.Hits == nil, two.Tags == nil)

	changed, err := HoldfastUpdate[Thing](client,
		[]HoldfastFilter{HoldfastEq("rank", int64(7))},
		HoldfastIncr("rank", int64(1)), HoldfastSet("tags", map[string]struct{}{"c": {}}))
	must(err)
	page, total, err := HoldfastSelect[Thing](client, HoldfastQuery{
		Filters: []HoldfastFilter{HoldfastBetween("rank", int64(8), int64(9))},
		OrderBy: "rank", Descending: true, Limit: 1,
	})
	must(err)
	fmt.Println(changed, len(page), page[0].Name, page[0].Rank, total)

	_, _, err = HoldfastSelect[Thing](client, HoldfastQuery{
		Filters: []HoldfastFilter{HoldfastEq("open", true)},
	})
	fmt.Println(err, err.(*HoldfastError).Code)
	gone, err := HoldfastDelete[Thing](client, HoldfastAll())
	must(err)
	fmt.Println(gone)
}

func only(client *HoldfastClient, properties ...string) Thing {
	found, _, err := HoldfastSelect[Thing](client, HoldfastQuery{Properties: properties})
	must(err)
	return found[0]
}

func show(client *HoldfastClient) {
	one := only(client)
	hits := uint64(0)
	if one.Hits != nil {
		hits = *one.Hits
	}
	fmt.Println(one.Id, one.Name, one.Rank, hits, one.Notes, one.LastSeen.UnixMilli())
}

func loaded(client *HoldfastClient) {
	hits := uint64(5)
	thing := NewThing()
	thing.Name, thing.Rank, thing.Hits, thing.Notes = "one", 77, &hits, []string{"x"}
	thing.LastSeen = time.UnixMilli(1000)
	_, err := HoldfastPut(client, 0, thing)
	must(err)

	some := only(client, "notes", "name")
	some.Notes = append(some.Notes, "y")
	_, err = HoldfastPut(client, 0, &some)
	must(err)
	show(client)

	keyless := only(client, "notes")
	keyless.Notes = []string{"z"}
	_, err = HoldfastPut(client, 0, &keyless)
	must(err)
	show(client)
	keyless.Rank = 78
	_, err = HoldfastPut(client, 0, &keyless)
	must(err)
	show(client)

	whole := only(client)
	whole.Hits, whole.Rank = nil, 0
	_, err = HoldfastPut(client, 0, &whole)
	must(err)
	show(client)

	other := only(client)
	other.Name = "two"
	ids, err := HoldfastPut(client, 0, &other)
	must(err)
	_, total, err := HoldfastSelect[Thing](client, HoldfastQuery{})
	must(err)
	fmt.Println(ids, total)
	_, total, err = HoldfastSelect[Note](client, HoldfastQuery{})
	must(err)
	fmt.Println(total)
}

func checks(client *HoldfastClient) {
	big, long, bad := "xl", "äöüß", "a\xff"
	fits := "äöü"
	for _, thing := range []*Thing{
		{}, {Name: "a", Size: &big}, {Name: "a", Code: &long}, {Name: bad}, {Name: "b", Code: &fits},
	} {
		_, err := HoldfastPut(client, 0, thing)
		fmt.Println(err)
	}
	everything := []HoldfastFilter{HoldfastAll()}
	_, err := HoldfastUpdate[Thing](client, everything, HoldfastSet("rank", "many"))
	fmt.Println(err)
	_, err = HoldfastUpdate[Thing](client, everything, HoldfastSet("size", "xl"))
	fmt.Println(err)
	_, err = HoldfastUpdate[Thing](client, everything, HoldfastSet("name", nil))
	fmt.Println(err)
	_, err = HoldfastUpdate[Thing](client, everything, HoldfastSet("ratio", 2), HoldfastSet("size", `l"x`))
	fmt.Println(err, only(client).Id)
}

func versions(client *HoldfastClient) {
	_, err := HoldfastPut(client, 0, &Thing{Name: "one"})
	must(err)
	mine, theirs := only(client), only(client)
	copied := theirs
	theirs.Rank = 1
	_, err = HoldfastPut(client, 0, &theirs)
	must(err)
	theirs.Rank = 2
	_, err = HoldfastPut(client, 0, &theirs)
	fmt.Println(err)
	_, err = HoldfastPut(client, 0, &mine)
	fmt.Println(err.(*HoldfastError).Code)
	_, err = HoldfastPut(client, 0, &copied)
	fmt.Println(err.(*HoldfastError).Code)
	keyless := only(client, "rank")
	keyless.Rank = 9
	_, err = HoldfastPut(client, 0, &theirs)
	must(err)
	_, err = HoldfastPut(client, 0, &keyless)
	fmt.Println(err.(*HoldfastError).Code, only(client).Rank)
}

func batches(client *HoldfastClient) {
	batch := client.Batch()
	note := NewNote()
	note.Text = "hello"
	HoldfastBatchPut(batch, 0, &Thing{Name: "one"}, &Thing{Name: "two"})
	HoldfastBatchPut(batch, time.Hour, note)
	HoldfastBatchUpdate[Thing](batch, []HoldfastFilter{HoldfastAll()}, HoldfastIncr("rank", 1))
	must(batch.Run())
	fmt.Println(note.Id != "", only(client).Rank)

	batch = client.Batch()
	stale := only(client)
	stale.holdfast = &holdfastLoaded{id: stale.Id, version: 99, keys: map[string]interface{}{"name": "one"}}
	HoldfastBatchDelete[Note](batch, HoldfastAll())
	HoldfastBatchPut(batch, 0, &stale)
	err := batch.Run()
	_, total, _ := HoldfastSelect[Note](client, HoldfastQuery{})
	fmt.Println(err.(*HoldfastError).Code, total)

	var group sync.WaitGroup
	for at := 0; at < 40; at++ {
		group.Add(1)
		go func() {
			defer group.Done()
			must(client.Ping())
		}()
	}
	group.Wait()
	fmt.Println(len(client.idle) <= 2)
}

func secure(options HoldfastOptions) {
	authority, err := os.ReadFile(os.Args[3])
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	_, err = HoldfastConnect(HoldfastOptions{Address: options.Address, TLS: &tls.Config{}})
	fmt.Println(err != nil)
	options.TLS = &tls.Config{RootCAs: roots}
	options.User, options.Password = "ann", "wrong-password"
	_, err = HoldfastConnect(options)
	fmt.Println(err.(*HoldfastError).Code)
	options.Password = os.Args[4]
	client, err := HoldfastConnect(options)
	must(err)
	_, err = HoldfastPut(client, 0, &Thing{Name: "safe"})
	fmt.Println(err)
}

func silent(options HoldfastOptions) {
	options.Timeout = 50 * time.Millisecond
	client, err := HoldfastConnect(options)
	must(err)
	begin := time.Now()
	err = client.Ping()
	slow, ok := err.(interface{ Timeout() bool })
	fmt.Println(ok && slow.Timeout(), time.Since(begin) < 10*time.Second)
}
