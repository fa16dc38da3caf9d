// Keeps a copy of participants, tasks and payments in mirror.json.
// Run it again to read what has changed since.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const file = "mirror.json"

// Payments need a key whose owner has the Finance permission to read.
// After a change here, delete mirror.json.
var names = []string{"participant", "task", "payment"}

type page struct {
	Data []map[string]any
	Meta struct {
		NextCursor    *string `json:"next_cursor"`
		CompleteUntil *string `json:"complete_until"`
	}
}

type mirror struct {
	From        *string                              `json:"from"`
	NewestEvent *string                              `json:"newest_event"`
	Records     map[string]map[string]map[string]any `json:"records"`
}

// get returns nil if there is no such record.
func get(path string, query url.Values) []byte {
	for {
		request, err := http.NewRequest("GET", os.Getenv("MUSTER_URL")+"/public/v1"+path+"?"+query.Encode(), nil)
		check(err)
		request.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))
		response, err := http.DefaultClient.Do(request)
		check(err)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		check(err)
		if response.StatusCode == 200 {
			return body
		}
		if response.StatusCode == 404 {
			return nil
		}
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		if (response.StatusCode != 429 && response.StatusCode != 503) || seconds == 0 {
			log.Fatalf("%s: %s", response.Status, body)
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

func getPage(path string, query url.Values) (result page) {
	check(json.Unmarshal(get(path, query), &result))
	return result
}

// newestEvent returns nil if there is no event.
func newestEvent() *string {
	newest := getPage("/events", url.Values{"sort": {"-created_at"}, "page[size]": {"1"}})
	if len(newest.Data) == 0 {
		return nil
	}
	id := newest.Data[0]["id"].(string)
	return &id
}

// walk calls visit with each page of a list.
func walk(path string, query url.Values, visit func(page)) {
	query.Set("page[size]", "100")
	for {
		page := getPage(path, query)
		visit(page)
		if page.Meta.NextCursor == nil {
			return
		}
		query.Set("page[after]", *page.Meta.NextCursor)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	var state mirror
	text, err := os.ReadFile(file)
	if err == nil {
		check(json.Unmarshal(text, &state))
	} else if !errors.Is(err, fs.ErrNotExist) {
		log.Fatal(err)
	}

	since := state.From
	// If the newest event that the previous run saw is gone, the service may have deleted later ones,
	// too: they are too old, or its operator restored a backup. Then read everything.
	if state.NewestEvent == nil || get("/events/"+*state.NewestEvent, nil) == nil {
		since = nil
	}
	// A run that reads everything begins with an empty copy, so deleted records are not in the new copy.
	if since == nil {
		state.Records = map[string]map[string]map[string]any{"participant": {}, "task": {}, "payment": {}}
	}

	newestAtStart := newestEvent()
	var completeUntil []*string
	read, deleted, total := 0, 0, 0
	for _, name := range names {
		query := url.Values{}
		if since != nil {
			query.Set("filter[updated_from]", *since)
		}
		walk("/"+name+"s", query, func(page page) {
			completeUntil = append(completeUntil, page.Meta.CompleteUntil)
			for _, record := range page.Data {
				state.Records[name][record["id"].(string)] = record
			}
			read += len(page.Data)
		})
	}

	if since != nil {
		types := strings.Join(names, ".deleted,") + ".deleted"
		query := url.Values{"filter[event_type]": {types}, "filter[created_from]": {*since}}
		walk("/events", query, func(page page) {
			for _, event := range page.Data {
				resource := event["resource"].(map[string]any)
				copies, id := state.Records[resource["type"].(string)], resource["id"].(string)
				if _, known := copies[id]; known {
					deleted++
				}
				delete(copies, id)
			}
		})
	}

	if newestAtStart != nil && get("/events/"+*newestAtStart, nil) == nil {
		log.Fatal("A backup was restored during this run. Run this again.")
	}
	// The next run continues from the time in the first response of this run.
	// If it is null, the old time stays.
	state.From = completeUntil[0]
	if state.From == nil {
		state.From = since
	}
	state.NewestEvent = newestEvent()

	// The file has either the old state or the new one, even if the program is stopped.
	text, err = json.Marshal(state)
	check(err)
	check(os.WriteFile(file+".new", text, 0o600))
	check(os.Rename(file+".new", file))
	for _, copies := range state.Records {
		total += len(copies)
	}
	fmt.Printf("%d read, %d deleted, %d in the copy.\n", read, deleted, total)
}
