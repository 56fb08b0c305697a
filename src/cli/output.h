#pragma once

#include <string>
#include <vector>

namespace posenc::cli {

/// The rule of every command that writes a file, called before it does any work: throws
/// CommandError if `output` is a file that it reads, under whatever name, or cannot be written. Of
/// an input that is an index of shards or a folder of a model these are also the files that belong
/// to it.
void check_output(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace posenc::cli
