#include "cli/translate/translator.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "cli/error.h"
#include "io/base/file.h"
#include "posenc/functional/pad_sequences.h"

namespace posenc::cli {
namespace {

constexpr int64_t kMostLogits = 1 << 24;  // per step: 64 MiB

void check_folder(const std::string& folder) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(folder, unknown)) fail("{}: must be a folder", folder);
  std::vector<std::string> lacking;
  for (const char* name : {"config.json", "source.spm", "target.spm", "vocab.json"}) {
    const auto path = std::filesystem::path(folder) / name;
    if (!io::may_exist(path.string())) lacking.emplace_back(name);
  }
  if (!lacking.empty()) {
    fail("{}: must be a Hugging Face folder of a Marian model. Missing: {}", folder,
         listed(lacking));
  }
}

const std::string& checked(const std::string& folder) {
  check_folder(folder);
  return folder;
}

std::string one_line(std::string text) {
  for (char& byte : text) {
    if (byte == '\n' || byte == '\r') byte = ' ';
  }
  return text;
}

}  // namespace

Translator::Translator(const std::string& folder, const SearchOptions& options, WeightDtype weights)
    : marian_(load_marian(checked(folder))),
      tokenizer_(Tokenizer::from_folder(folder)),
      frozen_(freeze(std::move(marian_.model), FreezeOptions().weights(weights))),
      batch_tokens_(options.batch) {
  const auto& sizes = frozen_.options();
  GenerateOptions& generation = marian_.generation;
  if (options.beams > 0) generation.num_beams(options.beams);
  if (options.max_length > 0) generation.max_new_tokens(options.max_length);
  generation.num_beams(std::max(generation.num_beams(), options.n_best))
      .num_return_sequences(options.n_best);
  batch_rows_ = std::max<int64_t>(1, kMostLogits / (generation.num_beams() * sizes.tgt_vocab()));
}

std::vector<std::vector<Hypothesis>> Translator::search(
    const std::vector<std::vector<int64_t>>& sources, const std::vector<std::size_t>& batch) {
  std::vector<torch::Tensor> ids;
  for (const std::size_t source : batch) ids.push_back(torch::tensor(sources[source]));
  const auto padded =
      functional::pad_sequences(ids, functional::PadSequencesOptions().pad_id(marian_.pad));
  return generate(frozen_, padded.ids, AttentionMask::key_padding(padded.mask), marian_.generation);
}

void Translator::translate(
    const std::vector<std::vector<int64_t>>& sources,
    const std::function<bool(const Translations& found, std::size_t done)>& after_batch) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].size() > sources[b].size();
  });
  Translations result(sources.size());
  for (std::size_t begin = 0; begin < order.size();) {
    const auto longest = static_cast<int64_t>(sources[order[begin]].size());
    const int64_t rows = std::clamp<int64_t>(batch_tokens_ / longest, 1, batch_rows_);
    const std::size_t end = std::min(order.size(), begin + static_cast<std::size_t>(rows));
    const std::vector<std::size_t> batch(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                         order.begin() + static_cast<std::ptrdiff_t>(end));
    const auto found = search(sources, batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      for (const auto& one : found[i]) {
        result[batch[i]].push_back({one_line(tokenizer_.decode(one.tokens)), one.score});
      }
    }
    if (!after_batch(result, begin = end)) return;
  }
}

}  // namespace posenc::cli
