#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace posenc::text {

/// The pieces <0x00> to <0xFF>.
const std::array<std::string, 256>& byte_pieces();
/// The byte that a piece stands for; nothing for another piece.
std::optional<uint8_t> byte_of_piece(std::string_view piece);

}  // namespace posenc::text
