// Command terraform-provider-aws stands in for hashicorp/aws: the real provider's schema, made-up values.
//
// It plans what AWS would decide as unknown and makes it up when it is applied. Data sources answer from the file
// that STUB_AWS_FIXTURES names. Nothing is known of what AWS itself checks.
package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

//go:embed schema.json
var schemaFile []byte

type attribute struct {
	Type                         json.RawMessage
	Required, Optional, Computed bool
}

type nestedBlock struct {
	NestingMode string `json:"nesting_mode"`
	Block       block
	MinItems    int64 `json:"min_items"`
	MaxItems    int64 `json:"max_items"`
}

type block struct {
	Attributes map[string]attribute
	BlockTypes map[string]nestedBlock `json:"block_types"`
}

type document struct {
	Provider    block
	Resources   map[string]block `json:"resource_schemas"`
	DataSources map[string]block `json:"data_source_schemas"`
}

var nesting = map[string]tfprotov5.SchemaNestedBlockNestingMode{
	"list":   tfprotov5.SchemaNestedBlockNestingModeList,
	"set":    tfprotov5.SchemaNestedBlockNestingModeSet,
	"single": tfprotov5.SchemaNestedBlockNestingModeSingle,
}

var primitives = map[string]tftypes.Type{
	"string":  tftypes.String,
	"number":  tftypes.Number,
	"bool":    tftypes.Bool,
	"dynamic": tftypes.DynamicPseudoType,
}

func typeOf(raw json.RawMessage) tftypes.Type {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		return primitives[word]
	}
	var pair []json.RawMessage
	must(json.Unmarshal(raw, &pair))
	must(json.Unmarshal(pair[0], &word))
	switch word {
	case "list":
		return tftypes.List{ElementType: typeOf(pair[1])}
	case "set":
		return tftypes.Set{ElementType: typeOf(pair[1])}
	case "map":
		return tftypes.Map{ElementType: typeOf(pair[1])}
	}
	var fields map[string]json.RawMessage
	must(json.Unmarshal(pair[1], &fields))
	object := map[string]tftypes.Type{}
	for name, field := range fields {
		object[name] = typeOf(field)
	}
	return tftypes.Object{AttributeTypes: object}
}

func (b block) schemaBlock() *tfprotov5.SchemaBlock {
	out := &tfprotov5.SchemaBlock{}
	for name, a := range b.Attributes {
		out.Attributes = append(out.Attributes, &tfprotov5.SchemaAttribute{
			Name: name, Type: typeOf(a.Type), Required: a.Required, Optional: a.Optional, Computed: a.Computed,
		})
	}
	for name, n := range b.BlockTypes {
		out.BlockTypes = append(out.BlockTypes, &tfprotov5.SchemaNestedBlock{
			TypeName: name, Block: n.Block.schemaBlock(), Nesting: nesting[n.NestingMode],
			MinItems: n.MinItems, MaxItems: n.MaxItems,
		})
	}
	return out
}

func (b block) schema() *tfprotov5.Schema { return &tfprotov5.Schema{Block: b.schemaBlock()} }

type provider struct {
	tfprotov5.ProviderServer
	doc      document
	fixtures map[string]map[string]any
}

func (p *provider) GetMetadata(context.Context, *tfprotov5.GetMetadataRequest) (*tfprotov5.GetMetadataResponse, error) {
	out := &tfprotov5.GetMetadataResponse{ServerCapabilities: &tfprotov5.ServerCapabilities{}}
	for name := range p.doc.Resources {
		out.Resources = append(out.Resources, tfprotov5.ResourceMetadata{TypeName: name})
	}
	for name := range p.doc.DataSources {
		out.DataSources = append(out.DataSources, tfprotov5.DataSourceMetadata{TypeName: name})
	}
	return out, nil
}

func (p *provider) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	out := &tfprotov5.GetProviderSchemaResponse{
		Provider:          p.doc.Provider.schema(),
		ResourceSchemas:   map[string]*tfprotov5.Schema{},
		DataSourceSchemas: map[string]*tfprotov5.Schema{},
	}
	for name, b := range p.doc.Resources {
		out.ResourceSchemas[name] = b.schema()
	}
	for name, b := range p.doc.DataSources {
		out.DataSourceSchemas[name] = b.schema()
	}
	return out, nil
}

func (p *provider) GetResourceIdentitySchemas(context.Context, *tfprotov5.GetResourceIdentitySchemasRequest) (*tfprotov5.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov5.GetResourceIdentitySchemasResponse{}, nil
}

func (p *provider) PrepareProviderConfig(_ context.Context, q *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: q.Config}, nil
}

// ConfigureProvider refuses an account that allowed_account_ids does not name, as the real provider does.
func (p *provider) ConfigureProvider(_ context.Context, q *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
	out := &tfprotov5.ConfigureProviderResponse{}
	value, err := q.Config.Unmarshal(p.doc.Provider.schema().ValueType())
	if err != nil {
		return out, err
	}
	fields := map[string]tftypes.Value{}
	if err := value.As(&fields); err != nil {
		return out, err
	}
	var allowed []tftypes.Value
	if ids := fields["allowed_account_ids"]; ids.IsFullyKnown() && !ids.IsNull() {
		if err := ids.As(&allowed); err != nil {
			return out, err
		}
	}
	account, _ := p.fixtures["aws_caller_identity"]["account_id"].(string)
	for _, id := range allowed {
		if text(id) == account {
			return out, nil
		}
	}
	if len(allowed) > 0 {
		out.Diagnostics = append(out.Diagnostics, &tfprotov5.Diagnostic{
			Severity: tfprotov5.DiagnosticSeverityError, Summary: "AWS account ID not allowed: " + account,
		})
	}
	return out, nil
}

func (p *provider) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

func (p *provider) ValidateResourceTypeConfig(context.Context, *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	return &tfprotov5.ValidateResourceTypeConfigResponse{}, nil
}

func (p *provider) ValidateDataSourceConfig(context.Context, *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}

func (p *provider) UpgradeResourceState(_ context.Context, q *tfprotov5.UpgradeResourceStateRequest) (*tfprotov5.UpgradeResourceStateResponse, error) {
	value, err := q.RawState.Unmarshal(p.doc.Resources[q.TypeName].schema().ValueType())
	if err != nil {
		return nil, err
	}
	state, err := tfprotov5.NewDynamicValue(value.Type(), value)
	return &tfprotov5.UpgradeResourceStateResponse{UpgradedState: &state}, err
}

func (p *provider) ReadResource(_ context.Context, q *tfprotov5.ReadResourceRequest) (*tfprotov5.ReadResourceResponse, error) {
	return &tfprotov5.ReadResourceResponse{NewState: q.CurrentState, Private: q.Private}, nil
}

func (p *provider) PlanResourceChange(_ context.Context, q *tfprotov5.PlanResourceChangeRequest) (*tfprotov5.PlanResourceChangeResponse, error) {
	planned, err := edited(p.doc.Resources[q.TypeName], q.ProposedNewState, func(_ string, a attribute, value tftypes.Value, _ map[string]tftypes.Value) tftypes.Value {
		if a.Computed && value.IsKnown() && value.IsNull() {
			return tftypes.NewValue(typeOf(a.Type), tftypes.UnknownValue)
		}
		return value
	})
	return &tfprotov5.PlanResourceChangeResponse{PlannedState: planned, PlannedPrivate: q.PriorPrivate}, err
}

func (p *provider) ApplyResourceChange(_ context.Context, q *tfprotov5.ApplyResourceChangeRequest) (*tfprotov5.ApplyResourceChangeResponse, error) {
	digest := sha256.Sum256(q.PlannedState.MsgPack)
	kind := strings.ReplaceAll(strings.TrimPrefix(q.TypeName, "aws_"), "_", "-")
	id := kind + "-" + hex.EncodeToString(digest[:4])
	state, err := edited(p.doc.Resources[q.TypeName], q.PlannedState, func(name string, a attribute, value tftypes.Value, others map[string]tftypes.Value) tftypes.Value {
		if value.IsKnown() {
			return value
		}
		return madeUp(typeOf(a.Type), valueFor(name, q.TypeName, id, others))
	})
	return &tfprotov5.ApplyResourceChangeResponse{NewState: state, Private: q.PlannedPrivate}, err
}

// ARNs as AWS makes them, and the attribute that stands for NAME.
var arns = map[string]struct{ shape, name string }{
	"aws_cloudwatch_log_group": {"logs:us-west-1:012345678910:log-group:NAME", "name"},
	"aws_ecr_repository":       {"ecr:us-west-1:012345678910:repository/NAME", "name"},
	"aws_efs_access_point":     {"elasticfilesystem:us-west-1:012345678910:access-point/ID", ""},
	"aws_efs_file_system":      {"elasticfilesystem:us-west-1:012345678910:file-system/ID", ""},
	"aws_iam_role":             {"iam::012345678910:role/NAME", "name"},
	"aws_msk_cluster":          {"kafka:us-west-1:012345678910:cluster/NAME/ID", "cluster_name"},
	"aws_s3_bucket":            {"s3:::NAME", "bucket"},
}

func valueFor(attribute, resource, id string, others map[string]tftypes.Value) string {
	switch attribute {
	case "id", "name":
		return id
	case "arn":
		known, ok := arns[resource]
		if !ok {
			return "arn:aws:made-up:us-west-1:012345678910:" + id
		}
		return "arn:aws:" + strings.NewReplacer("NAME", text(others[known.name]), "ID", id).Replace(known.shape)
	case "bootstrap_brokers_sasl_iam":
		return "b-1." + text(others["cluster_name"]) + ".made-up:9098"
	case "repository_url":
		return "012345678910.dkr.ecr.us-west-1.made-up/" + text(others["name"])
	}
	return "made-up-" + attribute
}

func (p *provider) ReadDataSource(_ context.Context, q *tfprotov5.ReadDataSourceRequest) (*tfprotov5.ReadDataSourceResponse, error) {
	known := p.fixtures[q.TypeName]
	state, err := edited(p.doc.DataSources[q.TypeName], q.Config, func(name string, a attribute, value tftypes.Value, _ map[string]tftypes.Value) tftypes.Value {
		if !a.Computed || !value.IsKnown() || !value.IsNull() {
			return value
		}
		kind := typeOf(a.Type)
		switch told := known[name].(type) {
		case string:
			return tftypes.NewValue(kind, told)
		case []any:
			list := []tftypes.Value{}
			for _, each := range told {
				list = append(list, tftypes.NewValue(tftypes.String, each.(string)))
			}
			return tftypes.NewValue(kind, list)
		}
		return madeUp(kind, "made-up-"+name)
	})
	return &tfprotov5.ReadDataSourceResponse{State: state}, err
}

func (p *provider) ImportResourceState(context.Context, *tfprotov5.ImportResourceStateRequest) (*tfprotov5.ImportResourceStateResponse, error) {
	return nil, errNotPlayed
}

func (p *provider) MoveResourceState(context.Context, *tfprotov5.MoveResourceStateRequest) (*tfprotov5.MoveResourceStateResponse, error) {
	return nil, errNotPlayed
}

func (p *provider) UpgradeResourceIdentity(context.Context, *tfprotov5.UpgradeResourceIdentityRequest) (*tfprotov5.UpgradeResourceIdentityResponse, error) {
	return nil, errNotPlayed
}

func (p *provider) CallFunction(context.Context, *tfprotov5.CallFunctionRequest) (*tfprotov5.CallFunctionResponse, error) {
	return nil, errNotPlayed
}

func (p *provider) GetFunctions(context.Context, *tfprotov5.GetFunctionsRequest) (*tfprotov5.GetFunctionsResponse, error) {
	return &tfprotov5.GetFunctionsResponse{}, nil
}

var errNotPlayed = errors.New("the stand-in does not play this")

// edited gives each attribute of the value the one that change makes of it.
func edited(b block, given *tfprotov5.DynamicValue, change func(string, attribute, tftypes.Value, map[string]tftypes.Value) tftypes.Value) (*tfprotov5.DynamicValue, error) {
	kind := b.schema().ValueType()
	value, err := given.Unmarshal(kind)
	if err != nil || value.IsNull() {
		return given, err
	}
	fields := map[string]tftypes.Value{}
	if err := value.As(&fields); err != nil {
		return nil, err
	}
	for name, a := range b.Attributes {
		fields[name] = change(name, a, fields[name], fields)
	}
	out, err := tfprotov5.NewDynamicValue(kind, tftypes.NewValue(kind, fields))
	return &out, err
}

func text(value tftypes.Value) string {
	var out string
	if value.IsKnown() && !value.IsNull() && value.As(&out) == nil {
		return out
	}
	return ""
}

func madeUp(kind tftypes.Type, word string) tftypes.Value {
	switch {
	case kind.Is(tftypes.String):
		return tftypes.NewValue(kind, word)
	case kind.Is(tftypes.Number):
		return tftypes.NewValue(kind, 0)
	case kind.Is(tftypes.Bool):
		return tftypes.NewValue(kind, false)
	case kind.Is(tftypes.List{}), kind.Is(tftypes.Set{}):
		return tftypes.NewValue(kind, []tftypes.Value{})
	case kind.Is(tftypes.Map{}):
		return tftypes.NewValue(kind, map[string]tftypes.Value{})
	}
	return tftypes.NewValue(kind, nil)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	p := &provider{fixtures: map[string]map[string]any{}}
	must(json.Unmarshal(schemaFile, &p.doc))
	if path := os.Getenv("STUB_AWS_FIXTURES"); path != "" {
		fixtures, err := os.ReadFile(path)
		must(err)
		must(json.Unmarshal(fixtures, &p.fixtures))
	}
	must(tf5server.Serve("example.test/hashicorp/aws", func() tfprotov5.ProviderServer { return p }))
}
