#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/save/write_folder.h"

namespace posenc {

/// Has `contents` copy the files of a tokenizer and of an image processor, which make a model's
/// inputs: those of the folder `chosen`, which replace all that `folder` has; or, if it has no
/// value, those of `default_folder`, unless that is gone or `folder` has some. An empty name is no
/// folder. Throws c10::ValueError for a chosen folder that has none.
void copy_input_files(PretrainedFolder& contents, const std::string& folder,
                      const std::optional<std::string>& chosen, const std::string& default_folder);

}  // namespace posenc
