#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "inference/linear/frozen_arrays.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/models/frozen_file.h"
#include "weights/common/file.h"

// A file of a frozen model: a safetensors file with FrozenArrays, each at a multiple of the largest
// power of two, up to 64, that divides its size, and in the metadata
//
//   posenc.frozen         the number of this format, which changes with the layout of any array
//   posenc.version        that of the library, for the reader
//   posenc.kind           Encoder, Classifier, Decoder, Transformer or TransformerEncoder
//   posenc.options        those of the module, as JSON
//   posenc.freeze         FreezeOptions, as JSON
//   posenc.settings       JSON: the XXH64 of config.json beside the file, if it was frozen with one
//   posenc.digests        JSON: the XXH64 of each array
//   posenc.header_digest  XXH64 of all bytes before the arrays, with zeros in place of itself
namespace posenc {

/// What such a file holds.
struct FrozenContents {
  std::string kind;
  nlohmann::json options;
  FreezeOptions freeze;
  inference::FrozenArrays arrays;
  std::map<std::string, std::string> settings = {};  ///< digests of files beside it, by their names
};

/// What save_frozen() writes of a model. Throws the errors that it documents.
FrozenContents frozen_contents(const FrozenEncoder& model);
FrozenContents frozen_contents(const FrozenClassifier& model);
FrozenContents frozen_contents(const FrozenDecoder& model);
FrozenContents frozen_contents(const FrozenTransformer& model);
FrozenContents frozen_contents(const FrozenTransformerEncoder& model);

/// The options of freeze() that a model was made with.
FreezeOptions options_of(const FrozenEncoder& model);
FreezeOptions options_of(const FrozenClassifier& model);
FreezeOptions options_of(const FrozenDecoder& model);
FreezeOptions options_of(const FrozenTransformer& model);

/// Writes them into a file that the caller commits. Throws WeightsError.
void write_frozen(const FrozenContents& contents, io::AtomicFile& file);

/// Reads such a file, or the one in a folder, and calls `use` with what it holds. All errors, those
/// of `use` too, become WeightsErrors that name the public function `caller` and the file.
void with_frozen_file(const char* caller, const std::string& path, const LoadFrozenOptions& options,
                      const std::function<void(const FrozenContents&)>& use);

/// Throws c10::TypeError, naming `caller`, unless modules are made in float32.
void check_default_dtype(const char* caller);

/// The digest of a text, as a file has it.
std::string digest_of(std::string_view bytes);

}  // namespace posenc
