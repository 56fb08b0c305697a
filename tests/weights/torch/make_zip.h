#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace posenc::testing {

inline std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value & 0xff);
  return out;
}

/// The parts of a zip archive of stored records without checksums, to be joined, possibly after
/// being damaged.
struct ZipParts {
  std::vector<std::string> locals;   ///< header, name and bytes of each record
  std::vector<std::string> entries;  ///< of the directory
  uint64_t count = 0;                ///< as stated in the end record
  std::string before_end;            ///< between directory and end record
  std::string after;

  std::string join() const {
    std::string out, directory;
    for (const auto& local : locals) out += local;
    for (const auto& entry : entries) directory += entry;
    return out + directory + before_end + "PK\5\6" + little(0, 4) + little(count, 2) +
           little(count, 2) + little(directory.size(), 4) + little(out.size(), 4) + little(0, 2) +
           after;
  }
};

inline ZipParts zip_parts(const std::vector<std::pair<std::string, std::string>>& records) {
  ZipParts parts;
  parts.count = records.size();
  uint64_t offset = 0;
  for (const auto& [name, bytes] : records) {
    const std::string sizes = little(0, 4) + little(bytes.size(), 4) + little(bytes.size(), 4);
    parts.locals.push_back("PK\3\4" + little(20, 2) + little(0, 8) + sizes +
                           little(name.size(), 2) + little(0, 2) + name + bytes);
    parts.entries.push_back("PK\1\2" + little(20, 2) + little(20, 2) + little(0, 8) + sizes +
                            little(name.size(), 2) + little(0, 12) + little(offset, 4) + name);
    offset += parts.locals.back().size();
  }
  return parts;
}

inline std::string make_zip(const std::vector<std::pair<std::string, std::string>>& records) {
  return zip_parts(records).join();
}

}  // namespace posenc::testing
