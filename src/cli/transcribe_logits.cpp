// posenc transcribe --logits: what a model of speech computes of given features and tokens.

#include <ATen/core/grad_mode.h>

#include "cli/error.h"
#include "cli/generate_sequences.h"
#include "cli/transcribe_parts.h"
#include "cli/weights.h"
#include "models/frozen/frozen_folder.h"
#include "models/seq2seq/load.h"
#include "posenc/inference/freeze.h"

namespace posenc::cli {
namespace {

constexpr const char *kSoundTensor = "input_features", *kForcedTensor = "decoder_input_ids";

struct ForcedSounds {
  at::Tensor features, ids;
};

ForcedSounds forced_sounds_in(const std::string& path) {
  const StateDict given = read_tensors(path, {});
  refuse_unknown(given, path, "--logits", {kSoundTensor, kForcedTensor});
  for (const char* name : {kSoundTensor, kForcedTensor})
    if (!given.contains(name))
      fail("{} must have a tensor `{}`; it contains {}", path, name, described(given));
  return {given[kSoundTensor], ids_in(given, kForcedTensor, -1)};
}

void check_forced_sounds(const ForcedSounds& inputs, const std::string& path,
                         const TransformerOptions& model) {
  const AudioEmbeddingsOptions& own = *model.src_features();
  const at::Tensor& features = inputs.features;
  if (features.dim() != 3 || !features.is_floating_point() ||
      features.size(1) != own.num_mel_bins() || features.size(2) != own.num_frames())
    fail(
        "{}: `{}` must be floating-point (N, {}, {}), the model's mel bins and frames; it is {} {}",
        path, kSoundTensor, own.num_mel_bins(), own.num_frames(), dtype_text(features),
        shape_of(features));
  if (inputs.ids.size(0) != features.size(0) || inputs.ids.size(1) == 0)
    fail("{}: `{}` must have the {} rows of `{}`, and a column; it is {}", path, kForcedTensor,
         features.size(0), kSoundTensor, shape_of(inputs.ids));
  check_ids(inputs.ids, {}, kForcedTensor, model.tgt_vocab(), model.most_tokens());
}

// With any model, a frozen one or a module.
template <typename Model>
StateDict forced_results(Model&& model, const ForcedSounds& inputs) {
  const at::Tensor memory = model.encode(inputs.features.to(at::kFloat));
  StateDict result;
  result.insert("logits",
                model.decode(inputs.ids, memory, AttentionMask::causal(), {}).contiguous());
  result.insert("encoder_last_hidden_state", memory.contiguous());
  return result;
}

void check_hears(const std::string& folder, const TransformerOptions& model) {
  if (!model.src_features())
    fail("{}: the model must be one of speech. Got one whose sources are tokens", folder);
}

}  // namespace

StateDict forced_logits_of_sounds(const std::string& folder, const std::string& input,
                                  const FreezeOptions& freezing, const LoadOptions& load,
                                  bool plain) {
  const at::NoGradGuard no_grad;
  const ForcedSounds inputs = forced_sounds_in(input);
  LoadReport report;
  const LoadOptions own = LoadOptions(load).report(&report);
  const auto with = [&](const TransformerOptions& options, auto&& model) {
    note_unexpected("transcribe", report);
    check_hears(folder, options);
    check_forced_sounds(inputs, input, options);
    return forced_results(model, inputs);
  };
  if (plain) {
    const Transformer model = load_seq2seq_weights(folder, own).model;
    return with(model->options, *model.ptr());
  }
  const FrozenTransformer model = load_and_freeze_seq2seq(folder, freezing, own).model;
  return with(model.options(), model);
}

}  // namespace posenc::cli
