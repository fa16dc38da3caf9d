// Keeps a copy of all participants in mirror.json. Run it again to read what has changed since.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

const file = "mirror.json"

type page struct {
	Data []map[string]any
	Meta struct {
		NextCursor    *string `json:"next_cursor"`
		CompleteUntil string  `json:"complete_until"`
	}
}

type mirror struct {
	Until   string                    `json:"until"`
	Records map[string]map[string]any `json:"records"`
}

func get(path string, query url.Values) (result page) {
	for {
		request, err := http.NewRequest("GET", os.Getenv("MUSTER_URL")+"/public/v1"+path+"?"+query.Encode(), nil)
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		if response.StatusCode == 200 {
			if err := json.Unmarshal(body, &result); err != nil {
				log.Fatal(err)
			}
			return result
		}
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		if (response.StatusCode != 429 && response.StatusCode != 503) || seconds == 0 {
			log.Fatalf("%s: %s", response.Status, body)
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

// walk calls visit with each page of a list.
func walk(path string, query url.Values, visit func(page)) {
	query.Set("page[size]", "100")
	for {
		page := get(path, query)
		visit(page)
		if page.Meta.NextCursor == nil {
			return
		}
		query.Set("page[after]", *page.Meta.NextCursor)
	}
}

func main() {
	state := mirror{Records: map[string]map[string]any{}}
	if text, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(text, &state); err != nil {
			log.Fatal(err)
		}
	}
	since := state.Until
	state.Until = ""

	changed, deleted := 0, 0
	query := url.Values{}
	if since != "" {
		query.Set("filter[updated_from]", since)
	}
	walk("/participants", query, func(page page) {
		// The next run continues from here: no change before this time can appear later.
		if state.Until == "" {
			state.Until = page.Meta.CompleteUntil
		}
		for _, record := range page.Data {
			state.Records[record["id"].(string)] = record
		}
		changed += len(page.Data)
	})

	if since != "" {
		query := url.Values{"filter[event_type]": {"participant.deleted"}, "filter[created_from]": {since}}
		walk("/events", query, func(page page) {
			for _, event := range page.Data {
				id := event["resource"].(map[string]any)["id"].(string)
				if _, known := state.Records[id]; known {
					deleted++
				}
				delete(state.Records, id)
			}
		})
	}

	// The file has either the old state or the new one, even if the program is stopped.
	text, err := json.Marshal(state)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		log.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d read, %d deleted, %d in the copy.\n", changed, deleted, len(state.Records))
}
