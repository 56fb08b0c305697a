// posenc transcribe: features of sounds in a file of tensors to tokens.

#include <ATen/ops/tensor.h>

#include <filesystem>

#include "cli/error.h"
#include "cli/generate_sequences.h"
#include "cli/transcribe_parts.h"
#include "cli/weights.h"
#include "models/seq2seq/generation_config.h"
#include "posenc/speech/speech_recognizer.h"

namespace posenc::cli {
namespace {

constexpr const char *kFeatures = "input_features", *kMask = "attention_mask",
                     *kPrompt = "prompt_ids";

StateDict tensors_of(const std::vector<Transcript>& found, int64_t fill, Timestamps times) {
  std::vector<Tokens> sequences;
  std::vector<std::vector<float>> token_times;
  Tokens languages, lengths;
  std::vector<double> segments;
  for (const Transcript& row : found) {
    sequences.push_back(row.tokens);
    languages.push_back(row.language_id.value_or(-1));
    auto& own = token_times.emplace_back();
    for (const TranscriptSegment& segment : row.segments) {
      own.insert(own.end(), segment.token_times.begin(), segment.token_times.end());
      segments.insert(segments.end(),
                      {static_cast<double>(sequences.size() - 1), segment.start, segment.end});
      lengths.push_back(static_cast<int64_t>(segment.tokens.size()));
    }
  }
  StateDict result;
  result.insert("sequences", padded(sequences, fill));
  result.insert("languages", at::tensor(languages, at::kLong));
  if (times == Timestamps::None) return result;
  result.insert("segments", at::tensor(segments, at::kDouble).view({-1, 3}));
  result.insert("segment_lengths", at::tensor(lengths, at::kLong));
  if (times == Timestamps::Word) result.insert("token_timestamps", padded(token_times, 0.0F));
  return result;
}

Tokens prompt_in(const at::Tensor& ids) {
  if (ids.dim() != 1 || ids.scalar_type() != at::kLong || ids.size(0) == 0)
    fail("`{}` must be int64 (P) with P > 0; it is {} {}", kPrompt, dtype_text(ids), shape_of(ids));
  const at::Tensor own = ids.contiguous();
  const auto* const first = own.const_data_ptr<int64_t>();
  return {first, first + own.numel()};
}

}  // namespace

StateDict transcribed_tensors(const SpeechRecognizer& recognizer,
                              const TranscribeArguments& arguments) {
  const std::string& input = arguments.inputs.front();
  TranscribeOptions options = arguments.options;
  const StateDict given = read_tensors(input, {kFeatures});
  refuse_unknown(given, input, "transcribe", {kFeatures, kMask, kPrompt});
  if (given.contains(kPrompt)) {
    if (arguments.set.contains(kPrompt))
      fail_usage("--set {} must not be given with a tensor of that name", kPrompt);
    options.prompt_ids(prompt_in(given[kPrompt]));
  }
  SpeechFeatures features = {given[kFeatures], {}};
  if (given.contains(kMask)) features.attention_mask = given[kMask];
  const auto path = (std::filesystem::path(arguments.folder) / "config.json").string();
  SettingOverrides overrides;
  for (const auto& [name, value] : arguments.set)
    if (name == "pad_token_id" || name == "eos_token_id")
      overrides[name] = {value, "--set " + name};
  const int64_t fill =
      fill_token(generation_settings(arguments.folder, Settings("transcribe", path), overrides),
                 /*beams=*/false);
  const auto found = recognizer.transcribe_features(features, options.decode(false));
  return tensors_of(found, fill, options.timestamps().value_or(Timestamps::None));
}

}  // namespace posenc::cli
