#include "cli/modules/decoder_kinds.h"

#include "cli/error.h"
#include "posenc/nn/rotary_embedding.h"
#include "posenc/nn/transformer/gated_feed_forward.h"
#include "posenc/nn/transformer/rms_norm.h"
#include "posenc/sinusoid/rotary_preset.h"

namespace posenc::cli {
namespace {

void norm(const Params& params, ModuleSpec& spec, const RMSNormOptions& options) {
  set_module(RMSNorm(RMSNormOptions(options).eps(params.real("eps").value_or(options.eps()))),
             spec);
}

void llama_norm(const Params& params, const Weights&, ModuleSpec& spec) {
  norm(params, spec, RMSNormOptions(spec.sizes["d_model"]));
}

void gemma_norm(const Params& params, const Weights&, ModuleSpec& spec) {
  norm(params, spec, RMSNormOptions::gemma(spec.sizes["d_model"]));
}

void feed_forward(const Params& params, ModuleSpec& spec, const std::string& gate) {
  set_module(GatedFeedForward(GatedFeedForwardOptions(spec.sizes["d_model"], spec.sizes["d_ff"])
                                  .gate(gate_of(params.text("gate").value_or(gate)))),
             spec);
}

void llama_feed_forward(const Params& params, const Weights&, ModuleSpec& spec) {
  feed_forward(params, spec, "silu");
}

void gemma_feed_forward(const Params& params, const Weights&, ModuleSpec& spec) {
  feed_forward(params, spec, "gelu_pytorch_tanh");
}

// The frequencies do not determine which channels form a pair.
void rotary_embedding(const Params& params, const Weights& weights, ModuleSpec& spec) {
  const auto preset = params.text("preset");
  if (!preset) {
    fail(
        "{}: the pairing of channels is not in the file; pass --param preset=NAME, one of "
        "`posenc presets --rotary`",
        weights.path);
  }
  const int64_t dim = 2 * spec.sizes["frequencies"];
  spec.sizes["d_model"] = dim;
  RotaryEmbedding module(RotaryEmbeddingOptions(rotary_preset(*preset, dim)).persistent(true));
  spec.module = module.ptr();
  spec.forward = [module](const Call& call) mutable {
    return std::get<0>(module->forward(call.at("input"), {}, 0, given(call, "position_ids")));
  };
}

}  // namespace

std::vector<Kind> decoder_kinds() {
  const std::map<std::string, std::string> names = {{"hidden_states", "input"}, {"x", "input"}};
  const std::vector<Key> projections = {{"gate_proj.weight", {"d_ff", "d_model"}, ""},
                                        {"up_proj.weight", {"d_ff", "d_model"}, ""},
                                        {"down_proj.weight", {"d_model", "d_ff"}, ""}};
  return {
      {.module = "RMSNorm",
       .names = {"RMSNorm", "LlamaRMSNorm", "MistralRMSNorm", "Qwen2RMSNorm", "Qwen3RMSNorm"},
       .source = "transformers, Llama's",
       .keys = {{"weight", {"d_model"}, ""}},
       .by_keys = false,
       .input = Input::Vectors,
       .inputs = {"input"},
       .params = {"eps"},
       .aliases = names,
       .build = llama_norm},
      {.module = "RMSNorm",
       .names = {"GemmaRMSNorm", "Gemma2RMSNorm", "Gemma3RMSNorm"},
       .source = "transformers, Gemma's: 1 + weight",
       .keys = {{"weight", {"d_model"}, ""}},
       .by_keys = false,
       .input = Input::Vectors,
       .inputs = {"input"},
       .params = {"eps"},
       .aliases = names,
       .build = gemma_norm},
      {.module = "GatedFeedForward",
       .names = {"GatedFeedForward", "LlamaMLP", "MistralMLP", "Qwen2MLP", "Qwen3MLP"},
       .source = "transformers, Llama's",
       .keys = projections,
       .by_keys = false,
       .input = Input::Vectors,
       .inputs = {"input"},
       .params = {"gate"},
       .aliases = names,
       .build = llama_feed_forward},
      {.module = "GatedFeedForward",
       .names = {"GemmaMLP", "Gemma2MLP", "Gemma3MLP"},
       .source = "transformers, Gemma's",
       .keys = projections,
       .by_keys = false,
       .input = Input::Vectors,
       .inputs = {"input"},
       .params = {"gate"},
       .aliases = names,
       .build = gemma_feed_forward},
      {.module = "RotaryEmbedding",
       .names = {"RotaryEmbedding", "EsmRotaryEmbedding"},
       .source = "transformers, rotates `input`",
       .keys = {{"inv_freq", {"frequencies"}, ""}},
       .by_keys = false,
       .input = Input::Vectors,
       .inputs = {"input"},
       .params = {"preset"},
       .optional = {"position_ids"},
       .build = rotary_embedding},
  };
}

}  // namespace posenc::cli
