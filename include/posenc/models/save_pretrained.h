#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <string>

#include "posenc/export.h"
#include "posenc/io/state_dict.h"
#include "posenc/models/classifier.h"

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
  /// Whether `folder` may be the one that the encoder was loaded from, or `rest_of`.
  TORCH_ARG(bool, overwrite) = false;
  /// Weights of more bytes than this are split into several files and an index.
  TORCH_ARG(int64_t, max_shard_bytes) = 50'000'000'000;
};

/// Saves an encoder as transformers does: `folder` then has a config.json and model.safetensors,
/// which from_pretrained() in Python opens, and load_encoder().
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
/// Everything is checked before a file is written. Files are replaced one by one, each whole or not
/// at all, and config.json last: a new folder that has one is complete. Other files of the folder,
/// such as those of a tokenizer, stay; weights of an earlier save are removed.
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

}  // namespace posenc
