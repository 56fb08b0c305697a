// torch.nn's stacks and the reference class Transformer. The number of layers, their widths and
// weight tying follow from the tensors; the number of heads is known only from a script.

#include <ATen/ops/equal.h>

#include "cli/arguments.h"
#include "parity/program/counterpart.h"
#include "posenc/transformer/transformer.h"

namespace posenc::parity {
namespace {

const std::string kSrc = "src_embedding.token_embedding.weight";
const std::string kTgt = "tgt_embedding.token_embedding.weight";
const std::string kOut = "final_layer.weight";

// The value that a script has under every name ending in `.suffix`.
std::string value_of(const Weights& weights, const std::string& suffix) {
  std::optional<std::string> found;
  for (const auto& [name, text] : weights.values) {
    if (!name.ends_with("." + suffix)) continue;
    if (found && *found != text) {
      fail("{}: {} must be the same in all layers. Got {} and {}", weights.path, suffix, *found,
           text);
    }
    found = text;
  }
  return found.value_or("");
}

int64_t heads_of(const Counterpart& made) {
  if (const auto given = made.params.integer("num_heads")) return *given;
  const auto heads = cli::parse_integer(value_of(made.weights, "num_heads"));
  if (!heads) {
    fail("{}: the number of heads is not in the file; pass --param num_heads=N", made.weights.path);
  }
  return *heads;
}

Activation activation_of_file(const Counterpart& made) {
  if (const auto given = made.params.text("activation")) return activation_of(*given);
  // torch.nn: 1, 2, or 0 for others
  const auto mark = value_of(made.weights, "activation_relu_or_gelu");
  if (mark == "0") {
    fail("{}: its activation is neither relu nor gelu; pass --param activation=swish",
         made.weights.path);
  }
  return mark == "2" ? Activation::GELU : Activation::ReLU;
}

// Counts `stack`layers.0., `stack`layers.1., ...
int64_t count_layers(const Counterpart& made, const std::string& stack) {
  int64_t count = 0;
  while (made.has(fmt::format("{}layers.{}.linear1.weight", stack, count))) ++count;
  return count;
}

// The options of a Transformer or of a layer.
template <typename Options>
Options with_layers(Options options, Counterpart& made, const std::string& stack) {
  return options.d_ff(made.sizes["d_ff"])
      .activation(activation_of_file(made))
      .norm_first(made.params.flag("norm_first", false))
      .layer_norm_eps(made.params.real("layer_norm_eps").value_or(1e-5))
      .bias(made.has(stack + "layers.0.linear1.bias"));
}

template <typename Stack, typename Options>
Stack stack_of(Counterpart& made) {
  const TransformerLayerOptions layer(made.sizes["d_model"], heads_of(made));
  const auto layers = with_layers(layer, made, "").batch_first(made.batch_first());
  return Stack(Options(layers, count_layers(made, "")).norm(made.has("norm.weight")));
}

// `of`_mask and `padding_of`_key_padding_mask, in torch.nn's convention: true is blocked, real
// numbers are added.
AttentionMask mask_of(const Call& call, const std::string& of, const std::string& padding_of) {
  const auto mask = given(call, of + "_mask");
  const auto padding = given(call, padding_of + "_key_padding_mask");
  return (mask.defined() ? AttentionMask::attn_mask_torch_nn(mask) : AttentionMask()) &
         (padding.defined() ? AttentionMask::key_padding_torch_nn(padding) : AttentionMask());
}

void encoder(Counterpart& made) {
  made.set(stack_of<TransformerEncoder, TransformerEncoderOptions>(made),
           [](TransformerEncoder& stack, const Call& call) {
             return stack->forward(call.at("src"), mask_of(call, "src", "src"));
           });
}

void decoder(Counterpart& made) {
  made.set(stack_of<TransformerDecoder, TransformerDecoderOptions>(made),
           [](TransformerDecoder& stack, const Call& call) {
             return stack->forward(call.at("tgt"), call.at("memory"), mask_of(call, "tgt", "tgt"),
                                   mask_of(call, "memory", "memory"));
           });
}

// Equal matrices are tied; a file that stores only one of several lacks the others.
Tying tying_of_file(const Counterpart& made) {
  if (const auto given = made.params.text("tie")) return tying_of(*given);
  const StateDict& tensors = made.weights.tensors;
  const auto same = [&](const std::string& a, const std::string& b) {
    const auto &x = tensors[a], &y = tensors[b];
    return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() && at::equal(x, y);
  };
  const bool src = made.has(kSrc), tgt = made.has(kTgt), out = made.has(kOut);
  if (src + tgt + out < 2) return Tying::ThreeWay;
  if (!tgt && !same(kSrc, kOut)) {
    // safetensors' save_model records the target's; otherwise the vocabulary sizes may decide.
    const auto shared = made.weights.values.find(kTgt);
    const std::string with = shared == made.weights.values.end() ? "" : shared->second;
    if (with == kSrc) return Tying::EncoderDecoder;
    if (with == kOut || tensors[kSrc].size(0) != tensors[kOut].size(0)) return Tying::DecoderOutput;
    fail(
        "{}: {} is missing, and may be tied to the source embedding or to the output; pass "
        "--param tie=encoder_decoder or --param tie=decoder_output",
        made.weights.path, kTgt);
  }
  const bool embeddings = !src || !tgt || same(kSrc, kTgt);
  const bool output = !out || !tgt || same(kTgt, kOut);
  if (embeddings) return output ? Tying::ThreeWay : Tying::EncoderDecoder;
  return output ? Tying::DecoderOutput : Tying::None;
}

void transformer(Counterpart& made) {
  auto& sizes = made.sizes;
  sizes["src_vocab"] = made.has(kSrc) ? made.weights.tensors[kSrc].size(0) : sizes["tgt_vocab"];
  const auto options = TransformerOptions(sizes["src_vocab"], sizes["tgt_vocab"])
                           .d_model(sizes["d_model"])
                           .num_heads(heads_of(made))
                           .num_encoder_layers(count_layers(made, "encoder."))
                           .num_decoder_layers(count_layers(made, "decoder."))
                           .scale(made.params.scale("scale", Scale::SqrtDim))
                           .max_len(made.params.integer("max_len").value_or(sizes["max_len"]))
                           .tie(tying_of_file(made))
                           .final_norm(made.has("encoder.norm.weight"));
  made.set(Transformer(with_layers(options, made, "encoder.")),
           [](Transformer& model, const Call& call) {
             const char* memory = call.count("memory_mask") ? "memory" : "src";
             return model->forward(call.at("src"), call.at("tgt"), mask_of(call, "src", "src"),
                                   mask_of(call, "tgt", "tgt"), mask_of(call, memory, "src"));
           });
}

}  // namespace

std::vector<Kind> transformer_kinds() {
  const Names square = {"d_model", "d_model"}, wide = {"d_ff", "d_model"};
  const Names stack = {"num_heads", "norm_first", "activation", "layer_norm_eps", "batch_first"};
  const Names whole = {"num_heads", "norm_first", "activation", "layer_norm_eps",
                       "tie",       "max_len",    "scale"};
  const Key attention = {"layers.0.self_attn.out_proj.weight", square};
  const Key feed_forward = {"layers.0.linear1.weight", wide};
  const std::string nn = "torch.nn, notebook 03";
  // clang-format off
  return {
      {"TransformerEncoder", {"TransformerEncoder"}, nn, {attention, feed_forward},
       true, Input::Sequences, stack, encoder,
       {"src_mask", "src_key_padding_mask"}, {"src"},
       {{"mask", "src_mask"}, {"key_padding_mask", "src_key_padding_mask"}}},
      {"TransformerDecoder", {"TransformerDecoder"}, nn,
       {attention, {"layers.0.multihead_attn.out_proj.weight", square}, feed_forward},
       true, Input::Sequences, stack, decoder,
       {"tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask"}, {"tgt", "memory"},
       {{"mask", "tgt_mask"}}},
      {"Transformer", {"Transformer"}, "notebook 03",
       {{"src_embedding.position_encoding.pe", {"1", "max_len", "d_model"}},
        {"encoder.layers.0.linear1.weight", wide}, {"decoder.layers.0.linear1.weight", wide},
        {"final_layer.bias", {"tgt_vocab"}}},
       true, Input::Sentences, whole, transformer,
       {"src_mask", "tgt_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_mask"}, {"src", "tgt"}},
  };
  // clang-format on
}

}  // namespace posenc::parity
