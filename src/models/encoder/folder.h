#pragma once

#include <functional>
#include <string>

#include "models/encoder/config.h"
#include "models/lora/adapted_source.h"
#include "models/types/leftovers.h"
#include "posenc/models/encoder.h"
#include "weights/load/source.h"

namespace posenc {

/// The folder of an encoder while it is read.
struct EncoderFolder {
  /// `source` are the weights at `path` in `folder`, renamed as `options` say.
  EncoderFolder(const char* caller, const std::string& folder, const LoadOptions& options,
                EncoderConfig config, const std::string& path, const io::TensorSource& source,
                Leftovers& leftovers);
  /// The same folder with other tensors, of the same prefix.
  EncoderFolder(const EncoderFolder& open, const io::TensorSource& other);

  const char* caller;  ///< the public function
  const std::string& folder;
  const LoadOptions& options;  ///< the caller's
  EncoderConfig config;
  const std::string path;  ///< of the weights
  const io::TensorSource& source;
  Leftovers& leftovers;      ///< those of `source`
  const std::string prefix;  ///< of the encoder's tensors
  std::string given;         ///< the folder of the call, which may be that of an adapter
  lora::AdaptedSource* adapted = nullptr;  ///< `source`, if adapters are merged into it
  bool is_strict = false;                  ///< whether each tensor has to be one of the model

  /// Makes tensors that the model does not have errors, also those of layers beyond its own.
  void be_strict();
};

/// Opens the folder and calls `read`, whose errors get the place of the weights in front, then
/// sorts the tensors that it left over. Throws the errors that load_encoder() documents for a
/// folder, its configuration and bad options. `part_of` names the part of a config.json of several
/// encoders; without it, it is load_encoder()'s.
void read_encoder_folder(const char* caller, const std::string& folder, const LoadOptions& options,
                         const std::function<void(EncoderFolder&)>& read,
                         const std::function<std::string(const Settings&)>& part_of = {});

/// A tensor of a file in float32; undefined if there is none of this name.
at::Tensor tensor_in(const io::TensorSource& source, const std::string& name);

/// An adapter changes the table of tokens, and not the output layer that is tied to it: that gets
/// an entry `out` of its own then.
void keep_tied_output(const EncoderFolder& open, const std::string& out);

/// Whether the tensor `name` of the file, which has it, is not `tensor`.
bool differs(const EncoderFolder& open, const std::string& name, const at::Tensor& tensor);

/// Whether the configuration has a pooler whose tensors are not in the file.
bool lacks_pooler(const EncoderFolder& open);

/// The encoder with the options in `open.config`, in eval mode. Sizes are checked before it is
/// allocated. `part` is put before the names of its tensors in the report.
Encoder encoder_in(const EncoderFolder& open, const std::string& part = "");
/// The same, without a pooled output where the file has no pooler or the vectors are made by later
/// stages: what load_encoder() returns.
Encoder encoder_with_its_pooler(EncoderFolder& open, const std::string& part = "");

}  // namespace posenc
