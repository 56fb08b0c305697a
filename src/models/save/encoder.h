#pragma once

#include <string>

#include "models/save/write_folder.h"
#include "posenc/models/save_pretrained.h"

namespace posenc {

/// What save_pretrained() writes into `folder` for an encoder. Nothing is written. Throws as
/// save_pretrained() does.
PretrainedFolder pretrained_folder_of(const Encoder& model, const std::string& folder,
                                      const SavePretrainedOptions& options);

}  // namespace posenc
