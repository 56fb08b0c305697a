#pragma once

#include <torch/arg.h>

#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/tokenizers/tensors.h"

namespace posenc POSENC_EXPORT {
namespace text {
struct ChatTemplateParts;
}  // namespace text

/// A message of a conversation.
struct ChatMessage {
  std::string role;     ///< `system`, `user`, `assistant`, or another one that the template knows
  std::string content;  ///< in UTF-8
};

/// Options of ChatTemplate::apply().
struct ChatTemplateOptions {
  /// Whether what begins an answer comes after the messages.
  TORCH_ARG(bool, add_generation_prompt) = false;
  /// Whether the text ends with the content of the last message, which a model is to continue.
  TORCH_ARG(bool, continue_final_message) = false;
  /// What else the template may name, as a JSON object: `tools`, `documents`, and its own switches,
  /// such as `{"enable_thinking": false}`. They come before special tokens of the same names.
  TORCH_ARG(std::string, variables) = "{}";
  /// What the template's `strftime_now(format)` returns; the local time of now unless it is set.
  TORCH_ARG(std::function<std::string(const std::string&)>, strftime_now) = {};
};

/// The chat template of a tokenizer, which writes the messages of a conversation as one text, with
/// the special tokens that a model was trained with:
///
/// ```cpp
/// const auto tokenizer = posenc::Tokenizer::from_folder("models/Qwen3-0.6B");
/// const auto chat = posenc::ChatTemplate::from_folder("models/Qwen3-0.6B", tokenizer);
/// const std::string text =
///     chat.apply({{"system", "You are brief."}, {"user", "Where is the cat?"}},
///                posenc::ChatTemplateOptions().add_generation_prompt(true));
/// const auto ids = tokenizer.encode_ids(
///     text, std::nullopt, posenc::TokenizerOptions().add_special_tokens(false));
/// ```
///
/// The text has all special tokens already, so it is encoded without others. Contents are written
/// as they are: one that has the text of a special token becomes this token.
///
/// Of Jinja it knows what published templates use (docs/chat_templates.md). Whatever else a
/// template has, or reaches with these messages, is an error that names it: nothing is rendered in
/// another way than by Jinja.
///
/// Any number of threads may use one; copies refer to the same template.
///
/// Errors: c10::ValueError for what of Jinja is not known, with its line; for what is an error in
/// Jinja, such as an attribute of what is undefined; for what the template raises by
/// `raise_exception`, such as roles in the wrong order; for no messages, texts that are not UTF-8
/// and variables that are no JSON object.
///
/// Source: `apply_chat_template` of transformers 5.23 with `tokenize=False`, and Jinja 3.1.
class ChatTemplate {
 public:
  /// A template in Jinja, and the special tokens that it may name, such as `bos_token`.
  explicit ChatTemplate(const std::string& source,
                        std::map<std::string, std::string> special_tokens = {});
  /// That of a model's folder: `chat_template.jinja`, or `chat_template` of tokenizer_config.json,
  /// with the special tokens of its tokenizer. `name`: one of several, which are in
  /// `additional_chat_templates` or in tokenizer_config.json. Beside the default one, that of the
  /// name `tool_use` counts where the variables have `tools`, as in transformers.
  ///
  /// Errors: those of Tokenizer::from_folder(); c10::ValueError for a folder without such a
  /// template, and with what of Jinja is not known.
  static ChatTemplate from_folder(const std::string& folder, const Tokenizer& tokenizer,
                                  const std::string& name = "default");

  /// The conversation as one text.
  std::string apply(const std::vector<ChatMessage>& messages,
                    const ChatTemplateOptions& options = {}) const;
  /// The same of messages with whatever a template reads of them, as a JSON list of objects: parts
  /// of a content, `tool_calls`, `reasoning_content`. Keys whose value is null are left out.
  std::string apply_json(const std::string& messages,
                         const ChatTemplateOptions& options = {}) const;

  /// The template.
  const std::string& source() const;
  /// The special tokens by their names.
  const std::map<std::string, std::string>& special_tokens() const;

 private:
  std::shared_ptr<const text::ChatTemplateParts> parts_;
};

/// Prints the class and the size of the template on one line.
std::ostream& operator<<(std::ostream& stream, const ChatTemplate& chat);

}  // namespace posenc
