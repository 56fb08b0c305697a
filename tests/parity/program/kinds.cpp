// Python's classes and their state_dict keys, and the C++ modules that compute the same. To add a
// module, add a row.

#include "parity/program/counterpart.h"
#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/position_embedding.h"
#include "posenc/positions/nn/rms_norm.h"
#include "posenc/positions/nn/rotary_embedding.h"
#include "posenc/positions/nn/timestep_embedding.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/positions/nn/token_embedding.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/transformer/layers/gated_feed_forward.h"

namespace posenc::parity {
namespace {

// Sets a module whose forward takes only the input.
template <typename Holder>
void set_plain(Counterpart& made, const Holder& holder) {
  made.set(holder,
           [](Holder& module, const Call& call) { return module->forward(call.at("input")); });
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
void set_positioned(Counterpart& made, const Holder& holder) {
  made.set(holder, [](Holder& module, const Call& call) {
    return module->forward(call.at("input"), offset_of(call), given(call, "position_ids"));
  });
}

// Rows of the counterpart's table: those of the file, unless max_len is given.
int64_t rows_of(const Counterpart& made) {
  return made.params.integer("max_len").value_or(made.sizes.at("max_len"));
}

template <typename Options>
Options positions(Options options, const Params& params) {
  return options.batch_first(params.flag("batch_first", true)).grow(params.flag("grow", false));
}

template <typename Options>
Options tokens(Options options, const Params& params, const Scale& scale) {
  return options.scale(params.scale("scale", scale)).padding_idx(params.integer("padding_idx"));
}

template <bool scaled>
void token_embedding(Counterpart& made) {
  const TokenEmbeddingOptions options(made.sizes["vocab_size"], made.sizes["d_model"]);
  const Scale& scale = scaled ? Scale::SqrtDim : Scale::None;
  set_plain(made, TokenEmbedding(tokens(options, made.params, scale)));
}

void positional_encoding(Counterpart& made) {
  const PositionalEncodingOptions options(made.sizes["d_model"], rows_of(made));
  set_positioned(made, PositionalEncoding(positions(options, made.params)));
}

template <typename Module, typename Options, bool scaled>
void tokens_and_positions(Counterpart& made) {
  const Options options(made.sizes["vocab_size"], made.sizes["d_model"], rows_of(made));
  const Scale& scale = scaled ? Scale::SqrtDim : Scale::None;
  set_positioned(made, Module(tokens(positions(options, made.params), made.params, scale)));
}

template <PositionEmbeddingOptions::RegisterAs register_as>
void position_embedding(Counterpart& made) {
  set_plain(made, PositionEmbedding(PositionEmbeddingOptions(made.sizes["d_model"])
                                        .max_len(rows_of(made))
                                        .register_as(register_as)));
}

void timestep_embedding(Counterpart& made) {
  made.set(TimestepEmbedding(TimestepEmbeddingOptions(made.sizes["d_model"], made.sizes["channels"])
                                 .hidden(made.sizes["hidden"])
                                 .max_len(rows_of(made))),
           [](TimestepEmbedding& module, const Call& call) {
             const auto image = given(call, "image");
             return image.defined() ? module->add_to(image, call.at("input"))
                                    : module->forward(call.at("input"));
           });
}

template <bool gemma>
void norm(Counterpart& made) {
  const int64_t d_model = made.sizes["d_model"];
  RMSNormOptions options = gemma ? RMSNormOptions::gemma(d_model) : RMSNormOptions(d_model);
  set_plain(made, RMSNorm(options.eps(made.params.real("eps").value_or(options.eps()))));
}

template <bool gemma>
void feed_forward(Counterpart& made) {
  const std::string gate = gemma ? "gelu_pytorch_tanh" : "silu";
  set_plain(made,
            GatedFeedForward(GatedFeedForwardOptions(made.sizes["d_model"], made.sizes["d_ff"])
                                 .gate(activation_of(made.params.text("gate").value_or(gate)))));
}

// The frequencies do not determine which channels form a pair.
void rotary_embedding(Counterpart& made) {
  const auto preset = made.params.text("preset");
  if (!preset) {
    fail(
        "{}: the pairing of channels is not in the file; pass --param preset=NAME, one of "
        "`posenc presets --rotary`",
        made.weights.path);
  }
  const int64_t dim = made.sizes["d_model"] = 2 * made.sizes["frequencies"];
  made.set(
      RotaryEmbedding(RotaryEmbeddingOptions(rotary_preset(*preset, dim)).persistent(true)),
      [](RotaryEmbedding& module, const Call& call) {
        return std::get<0>(module->forward(call.at("input"), {}, 0, given(call, "position_ids")));
      });
}

// clang-format off
std::vector<Kind> all_kinds() {
  using RegisterAs = PositionEmbeddingOptions::RegisterAs;
  const Names vocabulary = {"vocab_size", "d_model"}, rows = {"max_len", "d_model"}, buffer = {"1", "max_len", "d_model"};
  const Names of_tokens = {"scale", "padding_idx"}, of_rows = {"max_len", "batch_first", "grow"};
  const Names of_both = {"scale", "padding_idx", "max_len", "batch_first", "grow"};
  const Names position = {"position_ids", "offset"}, input = {"input"};
  const std::map<std::string, std::string> hidden = {{"hidden_states", "input"}, {"x", "input"}};
  const std::vector<Key> weight = {{"weight", {"d_model"}}};
  const std::vector<Key> gated = {
      {"gate_proj.weight", {"d_ff", "d_model"}}, {"up_proj.weight", {"d_ff", "d_model"}}, {"down_proj.weight", {"d_model", "d_ff"}}};
  std::vector<Kind> table = {
      {"TokenEmbedding", {"TokenEmbedding"}, "notebook 00",
       {{"embedding.weight", vocabulary}},
       true, Input::Ids, of_tokens, token_embedding<false>},
      {"TokenEmbedding", {"TransformerEmbedding"}, "notebook 03, scaled by sqrt(d_model)",
       {{"embedding.weight", vocabulary}},
       true, Input::Ids, of_tokens, token_embedding<true>},
      {"TokenEmbedding", {"Embedding", "TokenEmbedding"}, "notebook 01, a bare nn.Embedding",
       {{"weight", vocabulary, "embedding.weight"}},
       false, Input::Ids, of_tokens, token_embedding<false>},
      {"PositionalEncoding", {"PositionalEncoding"}, "notebooks 00 and 03",
       {{"pe", buffer}},
       true, Input::Embeddings, of_rows, positional_encoding, position},
      {"PositionEmbedding", {"PositionEmbedding", "PositionalEncoding"}, "notebook 02, a frozen weight",
       {{"embedding.weight", rows}},
       true, Input::Positions, {"max_len"}, position_embedding<RegisterAs::Parameter>},
      {"PositionEmbedding", {"MyPositionEncoding", "PositionEmbedding"}, "notebook 04, a buffer",
       {{"pos_enc", rows}},
       true, Input::Positions, {"max_len"}, position_embedding<RegisterAs::Buffer>},
      {"InputEmbedding", {"InputEmbedding"}, "notebook 00",
       {{"token_embedding.embedding.weight", vocabulary}, {"pos_encoding.pe", buffer}},
       true, Input::Ids, of_both, tokens_and_positions<InputEmbedding, InputEmbeddingOptions, false>, position},
      {"TokenAndPositionEmbedding", {"TokenAndPositionEmbedding"}, "notebook 03",
       {{"token_embedding.weight", vocabulary}, {"position_encoding.pe", buffer}},
       true, Input::Ids, of_both,
       tokens_and_positions<TokenAndPositionEmbedding, TokenAndPositionEmbeddingOptions, true>, position},
      {"TimestepEmbedding", {"TimestepEmbedding"}, "notebook 02",
       {{"pe.embedding.weight", rows}, {"pe_linear.0.weight", {"hidden", "d_model"}}, {"pe_linear.0.bias", {"hidden"}},
        {"pe_linear.2.weight", {"channels", "hidden"}}, {"pe_linear.2.bias", {"channels"}}},
       true, Input::Timesteps, {"max_len"}, timestep_embedding, {"image"}},
  };
  const std::vector<Kind> of_decoders = {
      {"RMSNorm", {"RMSNorm", "LlamaRMSNorm", "MistralRMSNorm", "Qwen2RMSNorm", "Qwen3RMSNorm"}, "transformers, Llama's",
       weight, false, Input::Vectors, {"eps"}, norm<false>, {}, input, hidden},
      {"RMSNorm", {"GemmaRMSNorm", "Gemma2RMSNorm", "Gemma3RMSNorm"}, "transformers, Gemma's: 1 + weight",
       weight, false, Input::Vectors, {"eps"}, norm<true>, {}, input, hidden},
      {"GatedFeedForward", {"GatedFeedForward", "LlamaMLP", "MistralMLP", "Qwen2MLP", "Qwen3MLP"}, "transformers, Llama's",
       gated, false, Input::Vectors, {"gate"}, feed_forward<false>, {}, input, hidden},
      {"GatedFeedForward", {"GemmaMLP", "Gemma2MLP", "Gemma3MLP"}, "transformers, Gemma's",
       gated, false, Input::Vectors, {"gate"}, feed_forward<true>, {}, input, hidden},
      {"RotaryEmbedding", {"RotaryEmbedding", "EsmRotaryEmbedding"}, "transformers, rotates `input`",
       {{"inv_freq", {"frequencies"}}}, false, Input::Vectors, {"preset"}, rotary_embedding, {"position_ids"}},
  };
  for (const auto& more : {transformer_kinds(), of_decoders}) table.insert(table.end(), more.begin(), more.end());
  return table;
}
// clang-format on

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> table = all_kinds();
  return table;
}

}  // namespace posenc::parity
