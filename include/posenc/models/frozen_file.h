#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <optional>
#include <string>

#include "posenc/export.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_decoder.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/weights/load.h"

namespace posenc POSENC_EXPORT {

/// Options of load_frozen_encoder() and the others.
struct LoadFrozenOptions {
  /// Whether the arrays are compared with their digests, which reads the whole file. The digest of
  /// the header, with all names, sizes and options, is always compared.
  TORCH_ARG(bool, check) = true;
  /// FreezeOptions::threads in place of that with which the model was frozen.
  TORCH_ARG(std::optional<int64_t>, threads) = std::nullopt;
};

/// Writes a frozen model into a safetensors file: its options, those of freeze(), the weights as it
/// holds them, converted or not, and what freeze() computed of others. The file is written beside
/// `path` and renamed, so that `path` is always either the old file or the complete new one; a
/// process that has the old one loaded keeps it.
///
/// ```cpp
/// posenc::Transformer model(posenc::TransformerOptions(100, 100).d_model(32).num_heads(4));
/// auto int8 = posenc::FreezeOptions().weights(posenc::WeightDtype::Int8);
/// posenc::save_frozen(posenc::freeze(model, int8), "frozen.safetensors");
/// auto loaded = posenc::load_frozen_transformer("frozen.safetensors");
/// ```
///
/// Errors: c10::ValueError for a model that is not what its options describe, by the first part
/// that differs, for GemmBackend::Autotune, whose choices are those of one process, and for the
/// encoder inside a classifier, which is saved with that; WeightsError for the file; those of
/// frozen models.
void save_frozen(const FrozenEncoder& model, const std::string& path);
/// The same for a classifier.
void save_frozen(const FrozenClassifier& model, const std::string& path);
/// The same for a Decoder.
void save_frozen(const FrozenDecoder& model, const std::string& path);
/// The same for a Transformer.
void save_frozen(const FrozenTransformer& model, const std::string& path);
/// The same for a stack.
void save_frozen(const FrozenTransformerEncoder& model, const std::string& path);

/// Loads what save_frozen() wrote, of an encoder, or of a classifier or a decoder, whose encoder it
/// then is. `path` is the file, or a folder that freeze_folder() wrote. The file is mapped: its
/// weights are not copied, and processes that load one file share its memory. It may be replaced,
/// as save_frozen() does, or removed while the model exists, but must not be written to or
/// truncated: reading beyond its end ends the process. The model has the bits of the one that was
/// saved, under each instruction set, and has no source that could change.
///
/// Errors: WeightsError for a file that is not a whole frozen model of this kind, written by this
/// version of the format, or one that was changed; and for a folder whose config.json is another
/// than the one that it was frozen with, or that has weights, too; c10::ValueError for negative
/// threads; c10::TypeError unless the default dtype is float32.
FrozenEncoder load_frozen_encoder(const std::string& path, const LoadFrozenOptions& options = {});
/// The same for a classifier.
FrozenClassifier load_frozen_classifier(const std::string& path,
                                        const LoadFrozenOptions& options = {});
/// The same for a Decoder.
FrozenDecoder load_frozen_decoder(const std::string& path, const LoadFrozenOptions& options = {});
/// The same for a Transformer, that of an encoder-decoder's folder included.
FrozenTransformer load_frozen_transformer(const std::string& path,
                                          const LoadFrozenOptions& options = {});
/// The same for a stack.
FrozenTransformerEncoder load_frozen_transformer_encoder(const std::string& path,
                                                         const LoadFrozenOptions& options = {});

/// Freezes the model in `folder`, which load_classifier(), load_decoder(), load_encoder() or
/// load_seq2seq() loads, and writes the folder `out`: the frozen model in frozen.safetensors, with
/// config.json, the files of the tokenizer and the other settings as they are; of a model of
/// sentence-transformers also its stages. What loads texts' models from a folder,
/// load_sentence_encoder() for one, and each command that freezes take `out` in place of `folder`.
///
/// A model with a head, by `architectures` in config.json, is frozen with it, and so is a
/// decoder-only language model, unless that names one without, `with_head` is false, or
/// sentence-transformers uses the encoder alone. The files are put in their places when
/// all are written; those of an earlier call are replaced.
///
/// Errors: c10::ValueError for an `out` that is `folder` or one of its stages', and for one that
/// holds weights or files of another model; those of the loaders, freeze() and save_frozen().
void freeze_folder(const std::string& folder, const std::string& out,
                   const FreezeOptions& options = {}, const LoadOptions& load = {},
                   bool with_head = true);

/// Whether a folder has a frozen model, as freeze_folder() writes it.
bool is_frozen_folder(const std::string& folder);

/// The encoder in a folder, frozen: load_frozen_encoder() of one that freeze_folder() wrote,
/// otherwise freeze() of load_encoder().
///
/// Errors: those of both; c10::ValueError for options of freeze(), other than the defaults and
/// `threads`, with which a frozen folder was not made.
FrozenEncoder load_and_freeze_encoder(const std::string& folder, const FreezeOptions& options = {},
                                      const LoadOptions& load = {});
/// The same for load_classifier().
FrozenClassifier load_and_freeze_classifier(const std::string& folder,
                                            const FreezeOptions& options = {},
                                            const LoadOptions& load = {},
                                            std::optional<head::Kind> kind = std::nullopt);
/// The same for load_decoder().
FrozenDecoder load_and_freeze_decoder(const std::string& folder, const FreezeOptions& options = {},
                                      const LoadOptions& load = {});

}  // namespace posenc
