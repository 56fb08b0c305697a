#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/encoder.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/tokenizers/tensors.h"

namespace posenc POSENC_EXPORT {
namespace text {
struct SentenceModel;
}  // namespace text

/// Options of SentenceEncoder::encode().
struct SentenceEncodeOptions {
  /// What the texts are for, which chooses the prompt, the route and the most tokens.
  TORCH_ARG(sentence::Task, task) = sentence::Task::None;
  /// Name of one of the folder's prompts; empty: none. Unless this or `prompt` is set, it is that
  /// of the task, `query` or `document`, and without a task the folder's default.
  TORCH_ARG(std::optional<std::string>, prompt_name) = std::nullopt;
  /// The text of a prompt, put before each text as it is.
  TORCH_ARG(std::optional<std::string>, prompt) = std::nullopt;
  /// Divides each vector by its length, after it has been truncated.
  TORCH_ARG(bool, normalize) = false;
  /// How many entries of each vector are returned; the folder's `truncate_dim` unless set.
  TORCH_ARG(std::optional<int64_t>, truncate_dim) = std::nullopt;
  /// How many texts are encoded at a time.
  TORCH_ARG(int64_t, batch_size) = 32;
  /// Is called with the index of each text of which the model takes a part only.
  TORCH_ARG(std::function<void(int64_t)>, on_truncated) = {};
};

/// Turns texts into vectors, as the model in a folder of sentence-transformers does: its tokenizer,
/// its encoder, frozen, and the stages after it. Whatever the batch, a text has the vector that it
/// has alone, except for rounding.
///
/// ```cpp
/// auto model = posenc::load_sentence_encoder("models/all-MiniLM-L6-v2");
/// auto vectors = model.encode({"How are you?", "Wie geht es dir?"});  // (2, D)
/// ```
///
/// Any number of threads may use one; copies refer to the same model.
///
/// Errors: those of Tokenizer and FrozenEncoder; c10::ValueError for a prompt that the folder does
/// not have, a task without a route, options out of range, and a text without tokens where the
/// model has no vector for it.
///
/// Source: `SentenceTransformer` of sentence-transformers 6.2, in float32.
class SentenceEncoder {
 public:
  /// The vectors (N, width) of texts, float32.
  torch::Tensor encode(const std::vector<std::string>& texts,
                       const SentenceEncodeOptions& options = {}) const;
  /// The same for queries: with the task Query.
  torch::Tensor encode_query(const std::vector<std::string>& texts,
                             SentenceEncodeOptions options = {}) const;
  /// The same for documents: with the task Document.
  torch::Tensor encode_document(const std::vector<std::string>& texts,
                                SentenceEncodeOptions options = {}) const;
  /// The vectors of token ids (B, L); not for static embeddings. The first `prompt_length` tokens
  /// of each sequence are those of a prompt.
  torch::Tensor forward(const torch::Tensor& ids, const EncoderInputs& inputs = {},
                        int64_t prompt_length = 0,
                        sentence::Task task = sentence::Task::None) const;

  /// Width of the vectors, before they are truncated.
  int64_t width() const;
  /// Most tokens of a text of a task, of which the others are cut off; nothing: there is no limit.
  std::optional<int64_t> max_seq_length(sentence::Task task = sentence::Task::None) const;
  /// What the folder says.
  const SentenceFolder& folder() const;
  /// The tokenizer of texts of a task.
  const Tokenizer& tokenizer(sentence::Task task = sentence::Task::None) const;

 private:
  friend SentenceEncoder load_sentence_encoder(const std::string& folder,
                                               const FreezeOptions& options,
                                               const LoadOptions& load);
  explicit SentenceEncoder(std::shared_ptr<const text::SentenceModel> model)
      : model_(std::move(model)) {}

  std::shared_ptr<const text::SentenceModel> model_;
};

/// Loads a model from a folder of sentence-transformers, or an encoder of transformers. `load` are
/// the options of load_encoder(); its report has the tensors of the encoder and of the stages.
///
/// Errors: those of read_sentence_folder() for SentenceKind::Dense, load_sentence_stages(),
/// load_encoder() and Tokenizer::from_folder(); c10::ValueError for a model of static embeddings
/// alone with another WeightDtype or ComputeDtype than Float32.
SentenceEncoder load_sentence_encoder(const std::string& folder, const FreezeOptions& options = {},
                                      const LoadOptions& load = {});

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const SentenceEncoder& model);

}  // namespace posenc
