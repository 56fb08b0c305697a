// Registry rows for modules made of attention layers: torch.nn's stacks and notebook 03's
// Transformer. The number of layers, their widths and weight tying follow from the tensors; the
// number of heads is known only from a script.

#include "cli/modules/stack_kinds.h"

#include <ATen/ops/equal.h>

#include "cli/arguments.h"
#include "cli/error.h"
#include "posenc/models/transformer.h"

namespace posenc::cli {
namespace {

const std::string kSrc = "src_embedding.token_embedding.weight";
const std::string kTgt = "tgt_embedding.token_embedding.weight";
const std::string kOut = "final_layer.weight";

// The value that a script has under every name ending in `.suffix`.
std::optional<std::string> value_of(const Weights& weights, const std::string& suffix) {
  std::optional<std::string> found;
  for (const auto& [name, text] : weights.values) {
    if (!name.ends_with("." + suffix)) continue;
    if (found && *found != text) {
      fail("{}: {} must be the same in all layers. Got {} and {}", weights.path, suffix, *found,
           text);
    }
    found = text;
  }
  return found;
}

int64_t heads_of(const Params& params, const Weights& weights) {
  if (const auto given = params.integer("num_heads")) return *given;
  const auto heads = whole_number(value_of(weights, "num_heads").value_or(""));
  if (!heads) {
    fail("{}: the number of heads is not in the file; pass --param num_heads=N", weights.path);
  }
  return *heads;
}

Activation activation_of_file(const Params& params, const Weights& weights) {
  if (const auto given = params.text("activation")) return activation_of(*given);
  const auto mark =
      value_of(weights, "activation_relu_or_gelu");  // torch.nn: 1, 2, or 0 for others
  if (mark == "0") {
    fail("{}: its activation is neither relu nor gelu; pass --param activation=swish",
         weights.path);
  }
  return mark == "2" ? Activation::GELU : Activation::ReLU;
}

// Counts `stack`layers.0., `stack`layers.1., ...
int64_t count_layers(const Weights& weights, const std::string& stack) {
  int64_t count = 0;
  while (weights.tensors.contains(fmt::format("{}layers.{}.linear1.weight", stack, count))) ++count;
  return count;
}

bool has_bias(const Weights& weights, const std::string& stack) {
  return weights.tensors.contains(stack + "layers.0.linear1.bias");
}

bool has_norm(const Weights& weights, const std::string& stack) {
  return weights.tensors.contains(stack + "norm.weight");
}

TransformerLayerOptions layer_of(const Params& params, const Weights& weights, ModuleSpec& spec) {
  spec.batch_first = params.flag("batch_first", true);
  return TransformerLayerOptions(spec.sizes["d_model"], heads_of(params, weights))
      .d_ff(spec.sizes["d_ff"])
      .activation(activation_of_file(params, weights))
      .norm_first(params.flag("norm_first", false))
      .layer_norm_eps(params.real("layer_norm_eps").value_or(1e-5))
      .bias(has_bias(weights, ""))
      .batch_first(spec.batch_first);
}

template <typename Options>
Options stack_options(const Params& params, const Weights& weights, ModuleSpec& spec) {
  return Options(layer_of(params, weights, spec), count_layers(weights, ""))
      .norm(has_norm(weights, ""));
}

// torch.nn's convention: true is blocked, real numbers are added.
AttentionMask mask_of(const Call& call, const std::string& name) {
  const auto mask = given(call, name);
  return mask.defined() ? AttentionMask::attn_mask_torch_nn(mask) : AttentionMask();
}

AttentionMask padding_of(const Call& call, const std::string& name) {
  const auto mask = given(call, name);
  return mask.defined() ? AttentionMask::key_padding_torch_nn(mask) : AttentionMask();
}

void encoder(const Params& params, const Weights& weights, ModuleSpec& spec) {
  TransformerEncoder stack(stack_options<TransformerEncoderOptions>(params, weights, spec));
  spec.module = stack.ptr();
  spec.forward = [stack](const Call& call) mutable {
    return stack->forward(call.at("src"),
                          mask_of(call, "src_mask") & padding_of(call, "src_key_padding_mask"));
  };
}

void decoder(const Params& params, const Weights& weights, ModuleSpec& spec) {
  TransformerDecoder stack(stack_options<TransformerDecoderOptions>(params, weights, spec));
  spec.module = stack.ptr();
  spec.forward = [stack](const Call& call) mutable {
    return stack->forward(
        call.at("tgt"), call.at("memory"),
        mask_of(call, "tgt_mask") & padding_of(call, "tgt_key_padding_mask"),
        mask_of(call, "memory_mask") & padding_of(call, "memory_key_padding_mask"));
  };
}

// For files in which source and output differ, and the target's embedding equals one of them:
// safetensors' save_model records which one, otherwise the vocabulary sizes may decide.
Tying tying_of_the_target(const Weights& weights) {
  const auto shared = weights.values.find(kTgt);
  if (shared != weights.values.end() && shared->second == kOut) return Tying::DecoderOutput;
  if (shared != weights.values.end() && shared->second == kSrc) return Tying::EncoderDecoder;
  if (weights.tensors[kSrc].size(0) != weights.tensors[kOut].size(0)) return Tying::DecoderOutput;
  fail(
      "{}: {} is missing, and may be tied to the source embedding or to the output; pass "
      "--param tie=encoder_decoder or --param tie=decoder_output",
      weights.path, kTgt);
}

// Equal matrices are tied; a file that stores only one of several lacks the others.
Tying tying_of_file(const Params& params, const Weights& weights) {
  if (const auto given = params.text("tie")) return tying_of(*given);
  const auto has = [&](const std::string& name) { return weights.tensors.contains(name); };
  const auto same = [&](const std::string& a, const std::string& b) {
    const auto &x = weights.tensors[a], &y = weights.tensors[b];
    return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() && at::equal(x, y);
  };
  const bool src = has(kSrc), tgt = has(kTgt), out = has(kOut);
  if (src + tgt + out < 2) return Tying::ThreeWay;
  if (!tgt && !same(kSrc, kOut)) return tying_of_the_target(weights);
  const bool embeddings = !src || !tgt || same(kSrc, kTgt);
  const bool output = !out || !tgt || same(kTgt, kOut);
  if (embeddings) return output ? Tying::ThreeWay : Tying::EncoderDecoder;
  return output ? Tying::DecoderOutput : Tying::None;
}

void transformer(const Params& params, const Weights& weights, ModuleSpec& spec) {
  const bool own_source = weights.tensors.contains(kSrc);
  spec.sizes["src_vocab"] = own_source ? weights.tensors[kSrc].size(0) : spec.sizes.at("tgt_vocab");
  const auto options = TransformerOptions(spec.sizes["src_vocab"], spec.sizes["tgt_vocab"])
                           .d_model(spec.sizes["d_model"])
                           .num_heads(heads_of(params, weights))
                           .num_encoder_layers(count_layers(weights, "encoder."))
                           .num_decoder_layers(count_layers(weights, "decoder."))
                           .d_ff(spec.sizes["d_ff"])
                           .scale(params.scale("scale", Scale::SqrtDim))
                           .max_len(params.integer("max_len").value_or(spec.sizes["max_len"]))
                           .tie(tying_of_file(params, weights))
                           .activation(activation_of_file(params, weights))
                           .norm_first(params.flag("norm_first", false))
                           .final_norm(has_norm(weights, "encoder."))
                           .layer_norm_eps(params.real("layer_norm_eps").value_or(1e-5))
                           .bias(has_bias(weights, "encoder."));
  Transformer model(options);
  spec.module = model.ptr();
  spec.forward = [model](const Call& call) mutable {
    const auto padding = padding_of(call, "src_key_padding_mask");
    const bool own_memory_mask = given(call, "memory_mask").defined();
    const auto memory = mask_of(call, own_memory_mask ? "memory_mask" : "src_mask") & padding;
    return model->forward(call.at("src"), call.at("tgt"), mask_of(call, "src_mask") & padding,
                          mask_of(call, "tgt_mask") & padding_of(call, "tgt_key_padding_mask"),
                          memory);
  };
}

}  // namespace

std::vector<Kind> stack_kinds() {
  const std::vector<std::string> stack = {"num_heads", "norm_first", "activation", "layer_norm_eps",
                                          "batch_first"};
  const std::vector<std::string> whole = {"num_heads", "norm_first", "activation", "layer_norm_eps",
                                          "tie",       "max_len",    "scale"};
  return {
      {.module = "TransformerEncoder",
       .names = {"TransformerEncoder"},
       .source = "torch.nn, notebook 03",
       .keys = {{"layers.0.self_attn.out_proj.weight", {"d_model", "d_model"}, ""},
                {"layers.0.linear1.weight", {"d_ff", "d_model"}, ""}},
       .by_keys = true,
       .input = Input::Sequences,
       .inputs = {"src"},
       .params = stack,
       .optional = {"src_mask", "src_key_padding_mask"},
       .aliases = {{"mask", "src_mask"}, {"key_padding_mask", "src_key_padding_mask"}},
       .build = encoder},
      {.module = "TransformerDecoder",
       .names = {"TransformerDecoder"},
       .source = "torch.nn, notebook 03",
       .keys = {{"layers.0.self_attn.out_proj.weight", {"d_model", "d_model"}, ""},
                {"layers.0.multihead_attn.out_proj.weight", {"d_model", "d_model"}, ""},
                {"layers.0.linear1.weight", {"d_ff", "d_model"}, ""}},
       .by_keys = true,
       .input = Input::Sequences,
       .inputs = {"tgt", "memory"},
       .params = stack,
       .optional = {"tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask"},
       .aliases = {{"mask", "tgt_mask"}},
       .build = decoder},
      {.module = "Transformer",
       .names = {"Transformer"},
       .source = "notebook 03",
       .keys = {{"src_embedding.position_encoding.pe", {"1", "max_len", "d_model"}, ""},
                {"encoder.layers.0.linear1.weight", {"d_ff", "d_model"}, ""},
                {"decoder.layers.0.linear1.weight", {"d_ff", "d_model"}, ""},
                {"final_layer.bias", {"tgt_vocab"}, ""}},
       .by_keys = true,
       .input = Input::Sentences,
       .inputs = {"src", "tgt"},
       .table_key = "src_embedding.position_encoding.pe",
       .params = whole,
       .optional = {"src_mask", "tgt_mask", "src_key_padding_mask", "tgt_key_padding_mask",
                    "memory_mask"},
       .build = transformer},
  };
}

}  // namespace posenc::cli
