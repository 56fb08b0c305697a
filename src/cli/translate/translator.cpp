#include "cli/translate/translator.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "cli/error.h"
#include "cli/weights.h"
#include "models/seq2seq/generation_config.h"
#include "posenc/positions/functional/pad_sequences.h"
#include "weights/common/file.h"

namespace posenc::cli {
namespace {

constexpr int64_t kMostLogits = 1 << 24;  // per step: 64 MiB

bool has_file(const std::string& folder, const char* name) {
  return io::may_exist((std::filesystem::path(folder) / name).string());
}

void check_folder(const std::string& folder) {
  // Other models have other tokenizers, whose errors name what they lack.
  if (!has_file(folder, "source.spm") && !has_file(folder, "target.spm")) return;
  std::vector<std::string> lacking;
  for (const char* name : {"config.json", "source.spm", "target.spm", "vocab.json"})
    if (!has_file(folder, name)) lacking.emplace_back(name);
  if (!lacking.empty()) {
    fail("{}: must be a Hugging Face folder of a Marian model. Missing: {}", folder,
         listed(lacking));
  }
}

FrozenSeq2Seq model_of(const std::string& folder, const FreezeOptions& freezing,
                       const LoadOptions& load) {
  check_folder(folder);
  LoadReport report;
  auto loaded = load_and_freeze_seq2seq(folder, freezing, LoadOptions(load).report(&report));
  note_unexpected("translate", report);
  if (loaded.model.options().src_features())
    fail("{} is a model of speech, whose sources are no tokens: posenc transcribe", folder);
  return loaded;
}

// The number of tokens that two sources end with.
std::size_t same_at_end(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first -
                                  a.rbegin());
}

// Each target begins with its first tokens, as the options have them, and those of `text`, of a
// vocabulary of its own where targets have one; the model knows `vocab` tokens.
void begin_with(const std::string& text, const Tokenizer& tokenizer, bool has_target_vocabulary,
                int64_t vocab, GenerateOptions& options) {
  if (text.empty()) return;
  std::vector<int64_t> prefix = {options.bos_id()};
  if (options.forced_bos_id()) prefix.push_back(*options.forced_bos_id());
  const auto ids = tokenizer.encode_ids(
      text, std::nullopt,
      TokenizerOptions().add_special_tokens(false).target(has_target_vocabulary));
  for (const int64_t id : ids) {
    if (id >= vocab)
      fail("--target-prefix: the model must have the token {}. Got id {}, and only {} tokens",
           io::in_quotes(tokenizer.id_to_token(id).value_or("")), id, vocab);
  }
  prefix.insert(prefix.end(), ids.begin(), ids.end());
  options.prefixes({std::move(prefix)});
}

// The folder's settings of the search with those of the command line in their place, so that one
// that is replaced need not be one that posenc has.
Settings search_settings(const std::string& folder, const Settings& config,
                         const SearchOptions& options) {
  SettingOverrides overrides;
  if (options.beams > 0) {
    overrides["num_beams"] = {std::max(options.beams, options.n_best), "--beams"};
    overrides["do_sample"] = {false, "--beams"};
  }
  overrides["num_return_sequences"] = {1, "--n-best"};
  if (options.max_length > 0) overrides["max_new_tokens"] = {options.max_length, "--max-length"};
  return generation_settings(folder, config, overrides);
}

GenerateOptions search_options(const Settings& settings, int64_t vocab,
                               const SearchOptions& options) {
  GenerateOptions generation = generate_options(settings, vocab);
  if (!generation.do_sample())
    generation.num_beams(std::max(generation.num_beams(), options.n_best));
  return generation.num_return_sequences(options.n_best).return_attention(options.alignments);
}

// The column of the largest value in each row.
std::vector<int64_t> largest_in_rows(const torch::Tensor& weights) {
  if (weights.numel() == 0) return {};
  const auto columns = weights.argmax(1);
  const auto* const first = columns.const_data_ptr<int64_t>();
  return {first, first + columns.numel()};
}

std::string one_line(std::string text) {
  for (char& byte : text) {
    if (byte == '\n' || byte == '\r') byte = ' ';
  }
  return text;
}

}  // namespace

Translator::Translator(const std::string& folder, const SearchOptions& options,
                       const FreezeOptions& freezing, const LoadOptions& load)
    : loaded_(model_of(folder, freezing, load)),
      settings_(search_settings(folder, loaded_.config, options)),
      generation_(search_options(settings_, loaded_.model.options().tgt_vocab(), options)),
      tokenizer_(Tokenizer::from_folder(folder)),
      languages_(tokenizer_, loaded_.model.options(), options.src_lang, options.tgt_lang),
      prefix_(options.prefix),
      blank_tokens_(tokenizer_.encode_ids("").size()),
      tokens_at_end_(same_at_end(tokenizer_.encode_ids(""), tokenizer_.encode_ids("a"))),
      batch_tokens_(options.batch) {
  const TransformerOptions sizes = loaded_.model.options();
  languages_.set_target(generation_);
  begin_with(options.target_prefix, tokenizer_, has_file(folder, "target.spm"), sizes.tgt_vocab(),
             generation_);
  check_search(settings_, generation_, torch::zeros({1, 1}, torch::kLong), sizes);
  const int64_t rows = std::max(generation_.num_beams(), generation_.num_return_sequences());
  batch_rows_ = std::max<int64_t>(1, kMostLogits / (rows * sizes.tgt_vocab()));
}

std::vector<int64_t> Translator::source(const std::string& line) const {
  auto ids = tokenizer_.encode_ids(line);
  if (ids.size() <= blank_tokens_) return {};
  if (!prefix_.empty()) ids = tokenizer_.encode_ids(prefix_ + line);
  return languages_.source(std::move(ids));
}

std::vector<std::vector<Hypothesis>> Translator::search(
    const std::vector<std::vector<int64_t>>& sources, const std::vector<std::size_t>& batch) {
  std::vector<torch::Tensor> ids;
  for (const std::size_t source : batch) ids.push_back(torch::tensor(sources[source]));
  const auto padded =
      functional::pad_sequences(ids, functional::PadSequencesOptions().pad_id(loaded_.pad));
  return generate(loaded_.model, padded.ids, AttentionMask::key_padding(padded.mask), generation_);
}

std::vector<std::vector<std::size_t>> Translator::batches_of(
    const std::vector<std::vector<int64_t>>& sources) const {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].size() > sources[b].size();
  });
  std::vector<std::vector<std::size_t>> batches;
  for (auto begin = order.begin(); begin != order.end();) {
    const auto longest = static_cast<int64_t>(sources[*begin].size());
    const int64_t rows = std::clamp<int64_t>(batch_tokens_ / longest, 1, batch_rows_);
    const auto end = begin + std::min<std::ptrdiff_t>(rows, order.end() - begin);
    batches.emplace_back(begin, end);
    begin = end;
  }
  std::ranges::sort(batches, {},
                    [](const auto& batch) { return *std::ranges::min_element(batch); });
  return batches;
}

std::vector<Translation> Translator::translations_of(const std::vector<Hypothesis>& found) const {
  std::vector<Translation> result;
  const auto& prefixes = generation_.prefixes();
  for (const Hypothesis& one : found) {
    auto tokens = prefixes.empty() ? one.tokens : prefixes.front();
    if (!prefixes.empty()) tokens.insert(tokens.end(), one.tokens.begin(), one.tokens.end());
    Translation translation = {one_line(tokenizer_.decode(tokens)), one.score};
    if (generation_.return_attention()) {
      translation.ids = one.tokens;
      translation.alignment = largest_in_rows(one.attention);
    }
    result.push_back(std::move(translation));
  }
  // Samples come in the order drawn.
  std::ranges::stable_sort(result, std::greater<>(), &Translation::score);
  return result;
}

void Translator::translate(
    const std::vector<std::vector<int64_t>>& sources,
    const std::function<bool(const Translations& found, std::size_t done)>& after_batch) {
  Translations result(sources.size());
  std::size_t done = 0;
  for (const auto& batch : batches_of(sources)) {
    const auto found = search(sources, batch);
    for (std::size_t i = 0; i < batch.size(); ++i) result[batch[i]] = translations_of(found[i]);
    if (!after_batch(result, done += batch.size())) return;
  }
}

}  // namespace posenc::cli
