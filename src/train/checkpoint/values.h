#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace posenc::io {

/// The values that a checkpoint keeps in its metadata.
using Values = std::map<std::string, std::string>;

/// Uses as many digits as are needed to read the same bits back.
std::string to_text(double value);
std::string to_text(int64_t value);
std::string to_text(bool value);

/// Reads the value under `key`. Throws WeightsError if it is missing or not of that type.
void read_value(const Values& values, const std::string& key, double& value);
void read_value(const Values& values, const std::string& key, bool& value);

/// The integer under `key`, from 0 to `most`; a double represents all of them exactly.
int64_t read_count(const Values& values, const std::string& key, int64_t most = int64_t{1} << 53);

}  // namespace posenc::io
