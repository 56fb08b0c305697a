#include "text/text_generator.h"

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "posenc/models/decoder.h"
#include "posenc/models/frozen_file.h"
#include "text/sentence/text_rows.h"

namespace posenc {
namespace text {

struct TextGeneratorParts {
  Tokenizer tokenizer;
  FrozenDecoder model;
  TextGenerateOptions options;
  std::optional<ChatTemplate> chat = {};
  std::string no_chat = {};  // why there is none
};

namespace {

constexpr const char* kClass = "TextGenerator";

std::vector<int64_t> prompt_ids(const TextGeneratorParts& parts, const std::string& prompt,
                                std::size_t index, bool add_special_tokens) {
  const std::size_t good = io::utf8_prefix(prompt);
  TORCH_CHECK_VALUE(good == prompt.size(), "[", kClass, "] prompt ", index,
                    " must be UTF-8. Got another byte at ", good);
  auto ids = parts.tokenizer.encode_ids(prompt, std::nullopt,
                                        TokenizerOptions().add_special_tokens(add_special_tokens));
  TORCH_CHECK_VALUE(!ids.empty(), "[", kClass, "] a prompt must have a token. Got ",
                    io::in_quotes(prompt));
  const int64_t vocab = parts.model.options().model().embeddings()->vocab_size();
  for (const int64_t id : ids)
    TORCH_CHECK_VALUE(id < vocab, "[", kClass, "] the model must have the token ",
                      io::in_quotes(parts.tokenizer.id_to_token(id).value_or("")), " with id ", id,
                      ". Got a model of ", vocab, " tokens");
  return ids;
}

// The options of one batch, which begins with prompt `first`.
GenerateOptions batch_options(const TextGeneratorParts& parts, const TextGenerateOptions& options,
                              int64_t first) {
  GenerateOptions generation = options.generation();
  if (!options.stop_strings().empty()) {
    auto stops = stop_strings(parts.tokenizer, options.stop_strings());
    if (const auto own = generation.stopping_criteria())
      generation.stopping_criteria([stops = std::move(stops), own](const auto& columns) mutable {
        return stops(columns) || own(columns);
      });
    else
      generation.stopping_criteria(std::move(stops));
  }
  if (options.on_text()) {
    auto stream = stream_text(parts.tokenizer, [first, &options](const GeneratedText& piece) {
      return options.on_text()({piece.source + first, piece.sequence, piece.text, piece.is_last});
    });
    generation.on_token(std::move(stream));
  }
  return generation;
}

// That of the folder, which most uses do without, or why there is none.
void read_chat_template(const std::string& folder, TextGeneratorParts& parts) {
  try {
    parts.chat = ChatTemplate::from_folder(folder, parts.tokenizer);
  } catch (const c10::Error& error) {
    parts.no_chat = error.what_without_backtrace();
  }
}

std::vector<std::string> strings_in(const posenc::Settings& settings, const char* name) {
  const auto& value = settings.value(name);
  if (value.is_string()) return {value.get<std::string>()};
  const bool are_strings =
      value.is_array() && !value.empty() &&
      std::all_of(value.begin(), value.end(), [](const auto& one) { return one.is_string(); });
  if (!are_strings) settings.refuse(name, "must be a string or a list of strings");
  return value.get<std::vector<std::string>>();
}

}  // namespace

TextGenerateOptions text_generate_options(posenc::Settings settings, int64_t vocab,
                                          decltype(generate_options)& make) {
  constexpr const char* kStops = "stop_strings";
  std::vector<std::string> stops;
  if (settings.has(kStops)) stops = strings_in(settings, kStops);
  settings.erase(kStops);
  return TextGenerateOptions(make(settings, vocab, Begin::Prompt)).stop_strings(stops);
}

}  // namespace text

std::vector<std::vector<Continuation>> TextGenerator::generate(
    const std::vector<std::string>& prompts, const TextGenerateOptions& options) const {
  text::check_positive(text::kClass, "batch_size", options.batch_size());
  std::vector<std::vector<int64_t>> ids;
  for (const std::string& prompt : prompts)
    ids.push_back(text::prompt_ids(*parts_, prompt, ids.size(), options.add_special_tokens()));
  std::vector<std::vector<Continuation>> result;
  for (auto begin = ids.begin(); begin != ids.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(options.batch_size(), ids.end() - begin);
    const auto found = posenc::generate(parts_->model, {begin, end},
                                        text::batch_options(*parts_, options, begin - ids.begin()));
    for (const auto& own : found) {
      auto& continuations = result.emplace_back();
      for (const Hypothesis& one : own)
        continuations.push_back({one.tokens, parts_->tokenizer.decode(one.tokens), one.score});
    }
    begin = end;
  }
  return result;
}

std::vector<std::vector<Continuation>> TextGenerator::generate(
    const std::vector<std::string>& prompts) const {
  return generate(prompts, parts_->options);
}

std::vector<Continuation> TextGenerator::chat(const std::vector<ChatMessage>& messages,
                                              const TextGenerateOptions& options) const {
  const std::string prompt = chat_template().apply(messages, options.chat_template());
  return std::move(
      generate({prompt}, TextGenerateOptions(options).add_special_tokens(false)).front());
}

std::vector<Continuation> TextGenerator::chat(const std::vector<ChatMessage>& messages) const {
  return chat(messages, parts_->options);
}

const ChatTemplate& TextGenerator::chat_template() const {
  TORCH_CHECK_VALUE(parts_->chat, parts_->no_chat);
  return *parts_->chat;
}

TextGenerateOptions TextGenerator::options() const { return parts_->options; }
const Tokenizer& TextGenerator::tokenizer() const { return parts_->tokenizer; }
int64_t TextGenerator::vocab_size() const {
  return parts_->model.options().model().embeddings()->vocab_size();
}

TextGenerator load_text_generator(const std::string& folder, const FreezeOptions& options,
                                  const LoadOptions& load) {
  Tokenizer tokenizer = Tokenizer::from_folder(folder);
  FrozenDecoder model = load_and_freeze_decoder(folder, options, load);
  auto generation = text::text_generate_options(decoder_generation_settings(folder),
                                                model.options().model().embeddings()->vocab_size(),
                                                generate_options_or_error);
  text::TextGeneratorParts parts = {std::move(tokenizer), std::move(model), std::move(generation)};
  text::read_chat_template(folder, parts);
  return TextGenerator(std::make_shared<const text::TextGeneratorParts>(std::move(parts)));
}

std::ostream& operator<<(std::ostream& stream, const TextGenerator& generator) {
  return stream << "TextGenerator(vocab_size=" << generator.vocab_size() << ")";
}

}  // namespace posenc
