#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <optional>
#include <string>

#include "posenc/export.h"
#include "posenc/models/classifier.h"
#include "posenc/models/decoder.h"
#include "posenc/models/seq2seq.h"
#include "posenc/weights/state_dict.h"

namespace posenc POSENC_EXPORT {

/// Options of save_pretrained().
struct SavePretrainedOptions {
  /// Settings, as a JSON object, that replace those of the config.json that the encoder came with:
  /// `{"id2label": {"0": "no", "1": "yes"}}`. An encoder whose options were made by hand came with
  /// none and needs all of them here, `model_type` included.
  TORCH_ARG(std::string, config) = "";
  /// The class in transformers that the folder is of, such as `BertForSequenceClassification`.
  /// Unless set, that of `rest_of`, or else the model type's class without a head, such as
  /// `BertModel`, or with that of a Classifier; `T5EncoderModel` for an encoder whose config.json
  /// names it.
  TORCH_ARG(std::string, architecture) = "";
  /// The tensors of a head, by the names that they have in the file: `classifier.weight`. A
  /// Classifier has its own.
  TORCH_ARG(StateDict, head);
  /// A folder, usually that which the encoder was loaded from, of which everything but the encoder
  /// is kept: its config.json, and the tensors of a head, of a decoder or of a second encoder.
  TORCH_ARG(std::string, rest_of) = "";
  /// Saves an encoder without a part that its class in transformers has, such as the pooler of
  /// `BertModel` or the decoder of `BartModel`, which from_pretrained() then draws at random.
  TORCH_ARG(bool, allow_missing) = false;
  /// The folder whose files of a tokenizer, and of an image processor, are copied as they are, in
  /// place of those that `folder` has. Unless set, it is `rest_of`, or that which the model was
  /// loaded from, if it is still there, and nothing is copied where `folder` has a tokenizer; an
  /// empty name: none is copied.
  TORCH_ARG(std::optional<std::string>, tokenizer_from) = std::nullopt;
  /// Whether `folder` may be the one that the encoder was loaded from, or `rest_of`.
  TORCH_ARG(bool, overwrite) = false;
  /// Weights of more bytes than this are split into several files and an index.
  TORCH_ARG(int64_t, max_shard_bytes) = 50'000'000'000;
};

/// Saves an encoder as transformers does: `folder` then has a config.json, model.safetensors and
/// the tokenizer, which from_pretrained() in Python opens, and load_encoder().
///
/// ```cpp
/// auto bert = posenc::load_encoder("models/bert-base-uncased");
/// torch::nn::Linear classifier(bert->options.encoder().layer().d_model(), 1);  // train both
/// posenc::StateDict head;  // of a class that Classifier does not have
/// head.insert("classifier.weight", classifier->weight);
/// head.insert("classifier.bias", classifier->bias);
/// posenc::save_pretrained(bert, "models/mine",
///                         posenc::SavePretrainedOptions()
///                             .architecture("BertForMultipleChoice")
///                             .head(head));
/// ```
///
/// Tensors get the names that they had in the file which the encoder was loaded from, and those of
/// the original implementation for an encoder that was not; all are float32. A decoder that
/// transformers ties to the table of tokens is left out. config.json is that which the encoder came
/// with, or was given to encoder_options_from_hf(), with the sizes that have changed, `dtype`,
/// `architectures` and all sizes that it left to their defaults. Of a pair such as CLIP, the part
/// that was loaded is saved alone unless `rest_of` is set.
///
/// Everything is checked before a file is written, and all files are written before one takes its
/// place, config.json last: after an error, such as a full disk, the folder is what it was, and a
/// folder that was new is gone. Other files of the folder stay; weights of an earlier save are
/// removed.
///
/// Errors: c10::ValueError for options of the encoder that its config.json contradicts, for parts
/// that are missing, for names that the encoder and the head share, and for the folder that the
/// encoder came from; WeightsError for files.
///
/// Source: `PreTrainedModel.save_pretrained` of transformers 5.23.
void save_pretrained(const Encoder& model, const std::string& folder,
                     const SavePretrainedOptions& options = {});
/// The same for an encoder with its head: the folder is of the class with that head, such as
/// `BertForSequenceClassification`, and config.json has the labels and the problem of `model`. The
/// head's tensors get the names that transformers gives them; a tied output layer is left out.
///
/// ```cpp
/// auto model = posenc::load_classifier("models/bert-emotions");  // train it
/// posenc::save_pretrained(model, "models/mine");
/// ```
///
/// Errors: the same; c10::ValueError for a head that config.json does not describe, and for
/// SavePretrainedOptions::head.
void save_pretrained(const Classifier& model, const std::string& folder,
                     const SavePretrainedOptions& options = {});
/// The same for a decoder-only language model: the folder is of the class with the output layer,
/// such as `LlamaForCausalLM`. A tied output layer is left out, and the generation_config.json is
/// that of the folder which the model was loaded from, if it is still there.
///
/// ```cpp
/// auto model = posenc::load_decoder("models/gpt2");  // train it
/// posenc::save_pretrained(model, "models/mine");
/// ```
///
/// Errors: the same; c10::ValueError for an output layer that config.json does not describe, and
/// for SavePretrainedOptions::head and rest_of.
void save_pretrained(const Decoder& model, const std::string& folder,
                     const SavePretrainedOptions& options = {});
/// The same for an encoder-decoder: the folder is of the class with the output layer, such as
/// `MarianMTModel`, and has a generation_config.json.
///
/// ```cpp
/// auto marian = posenc::load_seq2seq("opus-mt-en-de");
/// marian.model->train();  // train it
/// posenc::save_pretrained(marian, "models/mine");
/// ```
///
/// Tensors have the names that transformers gives them; a matrix of the vocabulary that is tied to
/// another is left out. generation_config.json is the one that the model came with, with the
/// settings of `generation` that have changed; callbacks and what is given for each source, such as
/// `prefixes`, are not settings. A model that was made by hand becomes a folder of its
/// `model_type`, whose config.json says what its options do.
///
/// Errors: the same; c10::ValueError, with its name, for an option of the model or of its search
/// that the model type or transformers has not, and for the options of the head of an encoder.
void save_pretrained(const Seq2SeqModel& model, const std::string& folder,
                     const SavePretrainedOptions& options = {});

}  // namespace posenc
