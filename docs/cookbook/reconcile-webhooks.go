// Makes the webhooks of the account those of webhooks.json, compared by URL. Webhooks that are not in
// the file are deleted. Prints the signing secret of each new webhook: nothing shows it again.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"
)

type webhook struct {
	ID          string   `json:"id,omitempty"`
	URL         string   `json:"url,omitempty"`
	Description string   `json:"description"`
	EventTypes  []string `json:"event_types"`
	Secret      string   `json:"secret,omitempty"`
}

// call sends a request and reads the response into result, which may be nil.
func call(method, path string, body, result any) {
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body)
	}
	key := rand.Text()
	for {
		request, err := http.NewRequest(method, os.Getenv("MUSTER_URL")+"/public/v1"+path, bytes.NewReader(data))
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))
		if body != nil {
			request.Header.Set("Content-Type", "application/json")
		}
		if method == "POST" {
			request.Header.Set("Idempotency-Key", key)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		if response.StatusCode < 300 {
			if result != nil {
				if err := json.Unmarshal(text, result); err != nil {
					log.Fatal(err)
				}
			}
			return
		}
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		if (response.StatusCode != 429 && response.StatusCode != 503) || seconds == 0 {
			log.Fatalf("%s %s: %s: %s", method, path, response.Status, text)
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

func sorted(types []string) []string {
	copied := slices.Clone(types)
	slices.Sort(copied)
	return copied
}

func main() {
	text, err := os.ReadFile("webhooks.json")
	if err != nil {
		log.Fatal(err)
	}
	var wanted []webhook
	if err := json.Unmarshal(text, &wanted); err != nil {
		log.Fatal(err)
	}
	// An account has at most 50 webhooks by default, so one page has all of them.
	var list struct{ Data []webhook }
	call("GET", "/webhooks?page[size]=100", nil, &list)
	existing := map[string]webhook{}
	for _, found := range list.Data {
		existing[found.URL] = found
	}

	for _, next := range wanted {
		found, exists := existing[next.URL]
		delete(existing, next.URL)
		if !exists {
			var created webhook
			call("POST", "/webhooks", next, &created)
			fmt.Println("created", next.URL, created.Secret)
		} else if found.Description != next.Description || !slices.Equal(sorted(found.EventTypes), sorted(next.EventTypes)) {
			change := webhook{Description: next.Description, EventTypes: next.EventTypes}
			call("PATCH", "/webhooks/"+found.ID, change, nil)
			fmt.Println("updated", next.URL)
		} else {
			fmt.Println("unchanged", next.URL)
		}
	}
	for url, found := range existing {
		call("DELETE", "/webhooks/"+found.ID, nil, nil)
		fmt.Println("deleted", url)
	}
}
