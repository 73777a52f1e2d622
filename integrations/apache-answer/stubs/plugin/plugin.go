// Package plugin declares as much of Apache Answer's plugin interfaces as the adapters use, written for their tests
// from the signatures that Answer publishes. Answer's own package takes its place when a site is built.
package plugin

import "context"

type GinContext struct{}

type Translator struct{ Fn func(ctx *GinContext) string }

type Info struct {
	Name        Translator
	SlugName    string
	Description Translator
	Author      string
	Version     string
	Link        string
}

type Base interface{ Info() Info }

// Registered holds what was given to Register.
var Registered []Base

func Register(p Base) { Registered = append(Registered, p) }

type ConfigType string
type InputType string

const (
	ConfigTypeInput  ConfigType = "input"
	ConfigTypeSwitch ConfigType = "switch"
	InputTypeText    InputType  = "text"
	InputTypeUrl     InputType  = "url"
)

type ConfigFieldUIOptions struct {
	InputType InputType
	Label     Translator
}

type ConfigField struct {
	Name        string
	Type        ConfigType
	Title       Translator
	Description Translator
	Required    bool
	Value       any
	UIOptions   ConfigFieldUIOptions
}

type Config interface {
	Base
	ConfigFields() []ConfigField
	ConfigReceiver(config []byte) error
}

type SearchResult struct{ ID, Type string }

type SearchContentStatus int
type SearchAcceptedCond int
type SearchOrderCond string

const (
	AcceptedCondAll SearchAcceptedCond = iota
	AcceptedCondTrue
	AcceptedCondFalse
)

const (
	SearchContentStatusAvailable = 1
	SearchContentStatusDeleted   = 10
)

const (
	SearchNewestOrder    SearchOrderCond = "newest"
	SearchActiveOrder    SearchOrderCond = "active"
	SearchScoreOrder     SearchOrderCond = "score"
	SearchRelevanceOrder SearchOrderCond = "relevance"
)

type SearchContent struct {
	ObjectID, Title, Type, Content string
	Answers                        int64
	Status                         SearchContentStatus
	Tags                           []string
	QuestionID, UserID             string
	Views, Created, Active, Score  int64
	HasAccepted                    bool
}

type SearchBasicCond struct {
	Page, PageSize                       int
	Words                                []string
	TagIDs                               [][]string
	UserID                               string
	Order                                SearchOrderCond
	QuestionAccepted, AnswerAccepted     SearchAcceptedCond
	QuestionID                           string
	VoteAmount, ViewAmount, AnswerAmount int
}

type SearchDesc struct{ Icon, Link string }

type SearchSyncer interface {
	GetAnswersPage(ctx context.Context, page, pageSize int) ([]*SearchContent, error)
	GetQuestionsPage(ctx context.Context, page, pageSize int) ([]*SearchContent, error)
}

type Search interface {
	Base
	Description() SearchDesc
	RegisterSyncer(ctx context.Context, syncer SearchSyncer)
	SearchContents(ctx context.Context, cond *SearchBasicCond) ([]SearchResult, int64, error)
	SearchQuestions(ctx context.Context, cond *SearchBasicCond) ([]SearchResult, int64, error)
	SearchAnswers(ctx context.Context, cond *SearchBasicCond) ([]SearchResult, int64, error)
	UpdateContent(ctx context.Context, content *SearchContent) error
	DeleteContent(ctx context.Context, objectID string) error
}

type VectorSearchResult struct {
	ObjectID, ObjectType, Metadata string
	Score                          float64
}

type VectorSearchContent struct{ ObjectID, ObjectType, Title, Content, Metadata string }

type VectorSearchDesc struct{ Icon, Link string }

type VectorSearchMetadataAnswer struct {
	AnswerID string `json:"answer_id"`
}

type VectorSearchMetadata struct {
	QuestionID string                       `json:"question_id"`
	AnswerID   string                       `json:"answer_id,omitempty"`
	Answers    []VectorSearchMetadataAnswer `json:"answers,omitempty"`
}

type VectorSearchSyncer interface {
	GetQuestionsPage(ctx context.Context, page, pageSize int) ([]*VectorSearchContent, error)
	GetAnswersPage(ctx context.Context, page, pageSize int) ([]*VectorSearchContent, error)
}

type VectorSearch interface {
	Base
	Description() VectorSearchDesc
	RegisterSyncer(ctx context.Context, syncer VectorSearchSyncer)
	SearchSimilar(ctx context.Context, query string, topK int) ([]VectorSearchResult, error)
	UpdateContent(ctx context.Context, content *VectorSearchContent) error
	DeleteContent(ctx context.Context, objectID string) error
}
