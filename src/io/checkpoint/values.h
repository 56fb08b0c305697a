#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace posenc::io {

/// What a checkpoint keeps in its metadata.
using Values = std::map<std::string, std::string>;

/// As many digits as it takes to read the same bits back.
std::string to_text(double value);
std::string to_text(int64_t value);
std::string to_text(bool value);

/// The value under `key`. Throws WeightsError where it is missing or is none of that type.
void read_value(const Values& values, const std::string& key, double& value);
void read_value(const Values& values, const std::string& key, bool& value);

/// The whole number under `key`, from 0 to `most`; a double holds all of them exactly.
int64_t read_count(const Values& values, const std::string& key, int64_t most = int64_t{1} << 53);

}  // namespace posenc::io
