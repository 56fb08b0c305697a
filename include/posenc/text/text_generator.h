#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "posenc/export.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/inference/generate_options.h"
#include "posenc/text/chat_template.h"
#include "posenc/text/generation.h"
#include "posenc/tokenizers/tensors.h"
#include "posenc/weights/load.h"

namespace posenc POSENC_EXPORT {
namespace text {
struct TextGeneratorParts;
}  // namespace text

/// A continuation of a prompt.
struct Continuation {
  std::vector<int64_t> ids;  ///< the new tokens, with the one that ended them
  std::string text;          ///< what they decode to, without special tokens
  double score = 0.0;        ///< Hypothesis::score
};

/// Options of TextGenerator; TextGenerator::options() has those of a folder.
struct TextGenerateOptions {
  /// Options with these settings of the search.
  explicit TextGenerateOptions(GenerateOptions generation) : generation_(std::move(generation)) {}

  /// Settings of the search.
  TORCH_ARG(GenerateOptions, generation);
  /// Strings that end a text with the token that completes one of them, see stop_strings().
  TORCH_ARG(std::vector<std::string>, stop_strings) = {};
  /// Is called with each token's text as soon as it is there, see stream_text(): `source` is the
  /// index of the prompt. Not with beams.
  TORCH_ARG(std::function<bool(const GeneratedText& piece)>, on_text) = nullptr;
  /// How many prompts are continued at a time.
  TORCH_ARG(int64_t, batch_size) = 8;
  /// Whether the tokenizer adds its special tokens to a prompt of generate(), such as that of its
  /// beginning. A prompt that a chat template has written has them already.
  TORCH_ARG(bool, add_special_tokens) = true;
  /// How chat() writes a conversation: `variables` has the template's own switches, and tools.
  TORCH_ARG(ChatTemplateOptions, chat_template) = ChatTemplateOptions().add_generation_prompt(true);
};

/// Continues texts with a decoder-only language model: text in, text out.
///
/// ```cpp
/// auto generator = posenc::load_text_generator("models/gpt2");
/// auto options = generator.options();
/// options.generation().max_new_tokens(20);
/// for (const auto& found : generator.generate({"The cat sat on"}, options))
///   std::cout << found.front().text << "\n";
/// ```
///
/// The settings of the search are those of the folder, so that the model of a chat samples where
/// its generation_config.json says so. Whatever the batch, a prompt has the continuation that it
/// has alone, except for rounding and samples.
///
/// Any number of threads may use one; copies refer to the same model.
///
/// Errors: those of Tokenizer and of generate() for a FrozenDecoder; c10::ValueError for a prompt
/// without tokens and for options out of range.
class TextGenerator {
 public:
  /// The continuations of each prompt, GenerateOptions::num_return_sequences of them: of beams best
  /// first, samples in the order drawn.
  std::vector<std::vector<Continuation>> generate(const std::vector<std::string>& prompts,
                                                  const TextGenerateOptions& options) const;
  /// The same with the settings of the folder.
  std::vector<std::vector<Continuation>> generate(const std::vector<std::string>& prompts) const;

  /// The answers to a conversation, which the folder's chat template writes as the prompt:
  ///
  /// ```cpp
  /// auto generator = posenc::load_text_generator("models/Qwen3-0.6B");
  /// auto answers = generator.chat({{"system", "You are brief."}, {"user", "Where is the cat?"}});
  /// std::cout << answers.front().text << "\n";
  /// ```
  ///
  /// Messages with more than a role and a content, and several conversations at a time, are prompts
  /// of generate() without add_special_tokens, which chat_template().apply_json() writes.
  ///
  /// Errors: those of ChatTemplate and chat_template().
  std::vector<Continuation> chat(const std::vector<ChatMessage>& messages,
                                 const TextGenerateOptions& options) const;
  /// The same with the settings of the folder.
  std::vector<Continuation> chat(const std::vector<ChatMessage>& messages) const;

  /// The chat template of the folder.
  ///
  /// Errors: c10::ValueError for a folder without one, and for one with what posenc does not know.
  const ChatTemplate& chat_template() const;
  /// The settings of the folder, to be changed for a call.
  TextGenerateOptions options() const;
  /// The tokenizer.
  const Tokenizer& tokenizer() const;
  /// Number of tokens that the model knows.
  int64_t vocab_size() const;

 private:
  friend TextGenerator load_text_generator(const std::string& folder, const FreezeOptions& options,
                                           const LoadOptions& load);
  explicit TextGenerator(std::shared_ptr<const text::TextGeneratorParts> parts)
      : parts_(std::move(parts)) {}

  std::shared_ptr<const text::TextGeneratorParts> parts_;
};

/// Loads the decoder-only language model in a folder, frozen, its tokenizer, and its settings of
/// generate(), of which `stop_strings` are honoured too.
///
/// Errors: those of load_decoder(), freeze(), load_generation_config() and
/// Tokenizer::from_folder().
TextGenerator load_text_generator(const std::string& folder, const FreezeOptions& options = {},
                                  const LoadOptions& load = {});

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const TextGenerator& generator);

}  // namespace posenc
