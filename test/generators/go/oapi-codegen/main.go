// Calls the API with a client that oapi-codegen generated, and reports what it saw as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"generators/oapi-codegen/muster"

	"github.com/google/uuid"
	"github.com/oapi-codegen/runtime/types"
)

func main() {
	ctx := context.Background()
	client := newClient(os.Getenv("MUSTER_URL"))
	proxy := newClient(os.Getenv("MUSTER_PROXY_URL"))
	participant := createParticipants(ctx, client)
	report := map[string]any{
		"names":          listNames(ctx, client),
		"not_found":      readMissing(ctx, client),
		"invalid":        createTwin(ctx, client),
		"amount_minor":   pay(ctx, client, participant),
		"questions":      ask(ctx, client),
		"event_types":    listEventTypes(ctx, client),
		"new_status":     readNewStatus(ctx, proxy),
		"new_event_type": readNewEventType(ctx, proxy),
	}
	limited := reachLimit(ctx, client)
	report["too_many_requests"] = limited.JSON429.Message
	report["headers"] = map[string]any{
		"X-RateLimit-Limit":     limited.Headers429.XRateLimitLimit,
		"X-RateLimit-Remaining": limited.Headers429.XRateLimitRemaining,
		"X-RateLimit-Reset":     limited.Headers429.XRateLimitReset,
		"RateLimit":             limited.Headers429.RateLimit,
		"RateLimit-Policy":      limited.Headers429.RateLimitPolicy,
		"Retry-After":           limited.Headers429.RetryAfter,
	}
	fmt.Println(string(must(json.Marshal(report))))
}

// createParticipants creates three participants and returns the ID of one of them.
func createParticipants(ctx context.Context, client *muster.ClientWithResponses) (participant muster.Id) {
	for name, status := range map[string]muster.NewParticipantStatus{
		"Ada":   muster.NewParticipantStatusActive,
		"Grace": muster.NewParticipantStatusInactive,
		"Alan":  muster.NewParticipantStatusArchived,
	} {
		email := types.Email(name + "@example.com")
		body := muster.ParticipantCreate{FullName: name, Email: &email, Status: &status}
		participant = must(client.CreateParticipantWithResponse(ctx, nil, body)).JSON201.Id
	}
	return participant
}

func listNames(ctx context.Context, client *muster.ClientWithResponses) (names []string) {
	size := muster.PageSize(1)
	for number, last := muster.PageNumber(1), muster.PageNumber(1); number <= last; number++ {
		page := must(client.ListParticipantsWithResponse(ctx, &muster.ListParticipantsParams{
			PageNumber:   &number,
			PageSize:     &size,
			FilterStatus: &[]muster.ParticipantStatus{muster.ParticipantStatusActive, muster.ParticipantStatusInactive},
			Sort:         &[]muster.ParticipantSort{muster.ParticipantSortFULLNAMEASCENDING},
		})).JSON200
		names = append(names, page.Data[0].FullName)
		last = page.Meta.LastPage
	}
	return names
}

func readMissing(ctx context.Context, client *muster.ClientWithResponses) any {
	return must(client.GetParticipantWithResponse(ctx, uuid.New(), nil)).JSON404.Message
}

// createTwin creates a participant with an email that another one has.
func createTwin(ctx context.Context, client *muster.ClientWithResponses) any {
	email := types.Email("ada@example.com")
	body := muster.ParticipantCreate{FullName: "Ada", Email: &email}
	return must(client.CreateParticipantWithResponse(ctx, nil, body)).JSON422.Errors
}

func pay(ctx context.Context, client *muster.ClientWithResponses, participant muster.Id) any {
	payment := muster.PaymentCreate{ParticipantId: participant, AmountMinor: 3_000_000_000, Currency: muster.VND}
	must(client.CreatePaymentWithResponse(ctx, nil, payment))
	return must(client.ListPaymentsWithResponse(ctx, nil)).JSON200.Data[0].AmountMinor
}

func ask(ctx context.Context, client *muster.ClientWithResponses) any {
	job := must(client.CreateJobWithResponse(ctx, nil, muster.JobCreate{
		Title:              "Interpreter",
		ScreeningQuestions: &[]muster.ScreeningQuestionInput{yearsQuestion(), cityQuestion()},
	}))
	return job.JSON201.ScreeningQuestions
}

func listEventTypes(ctx context.Context, client *muster.ClientWithResponses) (types []string) {
	events := must(client.ListEventsWithResponse(ctx, nil))
	for _, event := range events.JSON200.Data {
		types = append(types, must(event.Discriminator()))
	}
	return types
}

func readNewStatus(ctx context.Context, proxy *muster.ClientWithResponses) any {
	participants, err := proxy.ListParticipantsWithResponse(ctx, nil)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return participants.JSON200.Data[0].Status
}

func readNewEventType(ctx context.Context, proxy *muster.ClientWithResponses) any {
	events, err := proxy.ListEventsWithResponse(ctx, nil)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return must(events.JSON200.Data[0].Discriminator())
}

func reachLimit(ctx context.Context, client *muster.ClientWithResponses) *muster.ListParticipantsResponse {
	for {
		response := must(client.ListParticipantsWithResponse(ctx, nil))
		if response.JSON429 != nil {
			return response
		}
	}
}

func yearsQuestion() (question muster.ScreeningQuestionInput) {
	check(question.FromNumberQuestion(muster.NumberQuestion{
		Key:         "years",
		Label:       "Years?",
		Requirement: muster.MustHave,
		Operator:    muster.AtLeast,
		Expected:    5,
	}))
	return question
}

func cityQuestion() (question muster.ScreeningQuestionInput) {
	cities := make([]muster.AnswerValue, 2)
	check(cities[0].FromAnswerValue0("Lyon"))
	check(cities[1].FromAnswerValue0("Paris"))
	check(question.FromOneOfQuestion(muster.OneOfQuestion{
		Key:         "city",
		Label:       "City?",
		Requirement: muster.NiceToHave,
		Operator:    muster.OneOf,
		Expected:    cities,
	}))
	return question
}

func newClient(url string) *muster.ClientWithResponses {
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))
		return nil
	}
	return must(muster.NewClientWithResponses(url, muster.WithRequestEditorFn(authorize)))
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
