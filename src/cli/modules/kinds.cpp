// Registry mapping Python classes and their state_dict keys to the C++ modules that implement them.
// To add a module, add a row.

#include "cli/modules/kinds.h"

#include "cli/error.h"
#include "cli/modules/decoder_kinds.h"
#include "cli/modules/stack_kinds.h"
#include "posenc/nn/input_embedding.h"
#include "posenc/nn/position_embedding.h"
#include "posenc/nn/timestep_embedding.h"
#include "posenc/nn/token_and_position_embedding.h"
#include "posenc/nn/token_embedding.h"

namespace posenc::cli {
namespace {

using RegisterAs = PositionEmbeddingOptions::RegisterAs;

// Rows of the counterpart's table: those of the file, unless max_len is given.
int64_t rows_of(const Params& params, const ModuleSpec& spec) {
  return params.integer("max_len").value_or(spec.sizes.at("max_len"));
}

void token_embedding(const Params& params, ModuleSpec& spec, const Scale& scale) {
  set_module(TokenEmbedding(TokenEmbeddingOptions(spec.sizes["vocab_size"], spec.sizes["d_model"])
                                .scale(params.scale("scale", scale))
                                .padding_idx(params.integer("padding_idx"))),
             spec);
}

void plain_tokens(const Params& params, const Weights&, ModuleSpec& spec) {
  token_embedding(params, spec, Scale::None);
}

void scaled_tokens(const Params& params, const Weights&, ModuleSpec& spec) {
  token_embedding(params, spec, Scale::SqrtDim);
}

// The options shared by modules that add positions.
template <typename Options>
Options positions(Options options, const Params& params) {
  return options.batch_first(params.flag("batch_first", true)).grow(params.flag("grow", false));
}

// The options shared by modules that embed tokens and add positions.
template <typename Options>
Options tokens_and_positions(const Params& params, ModuleSpec& spec, const Scale& scale) {
  const Options options(spec.sizes["vocab_size"], spec.sizes["d_model"], rows_of(params, spec));
  return positions(options, params)
      .scale(params.scale("scale", scale))
      .padding_idx(params.integer("padding_idx"));
}

int64_t offset_of(const Call& call) {
  const auto offset = given(call, "offset");
  if (!offset.defined()) return 0;
  const bool whole = offset.scalar_type() == at::kLong || offset.scalar_type() == at::kInt;
  if (!whole || offset.numel() != 1 || offset.dim() > 1) {
    fail("`offset` must be int64 or int32 of shape () or (1). Got {} {}", dtype_text(offset),
         shape_of(offset));
  }
  return offset.item<int64_t>();
}

// Sets a module whose forward takes an offset and explicit positions.
template <typename Holder>
void positioned(Holder module, ModuleSpec& spec) {
  spec.module = module.ptr();
  spec.forward = [module](const Call& call) mutable {
    return module->forward(call.at("input"), offset_of(call), given(call, "position_ids"));
  };
}

void positional_encoding(const Params& params, const Weights&, ModuleSpec& spec) {
  positioned(PositionalEncoding(positions(
                 PositionalEncodingOptions(spec.sizes["d_model"], rows_of(params, spec)), params)),
             spec);
}

void input_embedding(const Params& params, const Weights&, ModuleSpec& spec) {
  positioned(InputEmbedding(tokens_and_positions<InputEmbeddingOptions>(params, spec, Scale::None)),
             spec);
}

void token_and_position_embedding(const Params& params, const Weights&, ModuleSpec& spec) {
  positioned(TokenAndPositionEmbedding(tokens_and_positions<TokenAndPositionEmbeddingOptions>(
                 params, spec, Scale::SqrtDim)),
             spec);
}

void position_embedding(const Params& params, ModuleSpec& spec, RegisterAs register_as) {
  set_module(PositionEmbedding(PositionEmbeddingOptions(spec.sizes["d_model"])
                                   .max_len(rows_of(params, spec))
                                   .register_as(register_as)),
             spec);
}

void frozen_positions(const Params& params, const Weights&, ModuleSpec& spec) {
  position_embedding(params, spec, RegisterAs::Parameter);
}

void buffered_positions(const Params& params, const Weights&, ModuleSpec& spec) {
  position_embedding(params, spec, RegisterAs::Buffer);
}

void timestep_embedding(const Params& params, const Weights&, ModuleSpec& spec) {
  TimestepEmbedding module(TimestepEmbeddingOptions(spec.sizes["d_model"], spec.sizes["channels"])
                               .hidden(spec.sizes["hidden"])
                               .max_len(rows_of(params, spec)));
  spec.module = module.ptr();
  spec.forward = [module](const Call& call) mutable {
    const auto image = given(call, "image");
    return image.defined() ? module->add_to(image, call.at("input"))
                           : module->forward(call.at("input"));
  };
}

std::vector<Kind> all_kinds() {
  const std::vector<std::string> tokens = {"scale", "padding_idx"};
  const std::vector<std::string> positions = {"max_len", "batch_first", "grow"};
  const std::vector<std::string> both = {"scale", "padding_idx", "max_len", "batch_first", "grow"};
  const std::vector<std::string> place = {"position_ids", "offset"};
  std::vector<Kind> table = {
      {.module = "TokenEmbedding",
       .names = {"TokenEmbedding"},
       .source = "notebook 00",
       .keys = {{"embedding.weight", {"vocab_size", "d_model"}, ""}},
       .by_keys = true,
       .input = Input::Ids,
       .inputs = {"input"},
       .params = tokens,
       .build = plain_tokens},
      {.module = "TokenEmbedding",
       .names = {"TransformerEmbedding"},
       .source = "notebook 03, scaled by sqrt(d_model)",
       .keys = {{"embedding.weight", {"vocab_size", "d_model"}, ""}},
       .by_keys = true,
       .input = Input::Ids,
       .inputs = {"input"},
       .params = tokens,
       .build = scaled_tokens},
      {.module = "TokenEmbedding",
       .names = {"Embedding", "TokenEmbedding"},
       .source = "notebook 01, a bare nn.Embedding",
       .keys = {{"weight", {"vocab_size", "d_model"}, "embedding.weight"}},
       .by_keys = false,
       .input = Input::Ids,
       .inputs = {"input"},
       .params = tokens,
       .build = plain_tokens},
      {.module = "PositionalEncoding",
       .names = {"PositionalEncoding"},
       .source = "notebooks 00 and 03",
       .keys = {{"pe", {"1", "max_len", "d_model"}, ""}},
       .by_keys = true,
       .input = Input::Embeddings,
       .inputs = {"input"},
       .table_key = "pe",
       .params = positions,
       .optional = place,
       .build = positional_encoding},
      {.module = "PositionEmbedding",
       .names = {"PositionEmbedding", "PositionalEncoding"},
       .source = "notebook 02, a frozen weight",
       .keys = {{"embedding.weight", {"max_len", "d_model"}, ""}},
       .by_keys = true,
       .input = Input::Positions,
       .inputs = {"input"},
       .table_key = "embedding.weight",
       .params = {"max_len"},
       .build = frozen_positions},
      {.module = "PositionEmbedding",
       .names = {"MyPositionEncoding", "PositionEmbedding"},
       .source = "notebook 04, a buffer",
       .keys = {{"pos_enc", {"max_len", "d_model"}, ""}},
       .by_keys = true,
       .input = Input::Positions,
       .inputs = {"input"},
       .table_key = "pos_enc",
       .params = {"max_len"},
       .build = buffered_positions},
      {.module = "InputEmbedding",
       .names = {"InputEmbedding"},
       .source = "notebook 00",
       .keys = {{"token_embedding.embedding.weight", {"vocab_size", "d_model"}, ""},
                {"pos_encoding.pe", {"1", "max_len", "d_model"}, ""}},
       .by_keys = true,
       .input = Input::Ids,
       .inputs = {"input"},
       .table_key = "pos_encoding.pe",
       .params = both,
       .optional = place,
       .build = input_embedding},
      {.module = "TokenAndPositionEmbedding",
       .names = {"TokenAndPositionEmbedding"},
       .source = "notebook 03",
       .keys = {{"token_embedding.weight", {"vocab_size", "d_model"}, ""},
                {"position_encoding.pe", {"1", "max_len", "d_model"}, ""}},
       .by_keys = true,
       .input = Input::Ids,
       .inputs = {"input"},
       .table_key = "position_encoding.pe",
       .params = both,
       .optional = place,
       .build = token_and_position_embedding},
      {.module = "TimestepEmbedding",
       .names = {"TimestepEmbedding"},
       .source = "notebook 02",
       .keys = {{"pe.embedding.weight", {"max_len", "d_model"}, ""},
                {"pe_linear.0.weight", {"hidden", "d_model"}, ""},
                {"pe_linear.0.bias", {"hidden"}, ""},
                {"pe_linear.2.weight", {"channels", "hidden"}, ""},
                {"pe_linear.2.bias", {"channels"}, ""}},
       .by_keys = true,
       .input = Input::Timesteps,
       .inputs = {"input"},
       .table_key = "pe.embedding.weight",
       .params = {"max_len"},
       .optional = {"image"},
       .build = timestep_embedding},
  };
  for (auto& kind : stack_kinds()) table.push_back(std::move(kind));
  for (auto& kind : decoder_kinds()) table.push_back(std::move(kind));
  return table;
}

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> table = all_kinds();
  return table;
}

}  // namespace posenc::cli
