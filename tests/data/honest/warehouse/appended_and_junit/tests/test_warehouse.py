import pytest

from warehouse import Warehouse


def test_added_pieces_are_on_hand():
    warehouse = Warehouse()
    warehouse.add("lamp", 3)
    warehouse.add("lamp", 2)
    assert warehouse.on_hand("lamp") == 5


def test_nothing_can_be_added_in_negative_numbers():
    with pytest.raises(ValueError):
        Warehouse().add("lamp", -1)


def test_everything_is_available_at_first():
    warehouse = Warehouse()
    warehouse.add("lamp", 4)
    assert warehouse.available("lamp") == 4


def test_an_unknown_item_is_not_available():
    assert Warehouse().available("unicorn") == 0


def test_a_reservation_holds_pieces():
    warehouse = Warehouse()
    warehouse.add("chair", 10)
    warehouse.reserve("chair", 4)
    assert warehouse.available("chair") == 6
    assert warehouse.on_hand("chair") == 10
    assert warehouse.reserved("chair") == 4


def test_a_reservation_knows_what_it_is_for():
    warehouse = Warehouse()
    warehouse.add("chair", 10)
    reservation = warehouse.reserve("chair", 3)
    assert reservation.item == "chair"
    assert reservation.count == 3
    assert reservation.state == "held"


def test_taking_lets_pieces_leave():
    warehouse = Warehouse()
    warehouse.add("desk", 5)
    reservation = warehouse.reserve("desk", 2)
    reservation.take()
    assert reservation.state == "taken"
    assert warehouse.on_hand("desk") == 3
    assert warehouse.available("desk") == 3


def test_releasing_makes_pieces_available():
    warehouse = Warehouse()
    warehouse.add("desk", 5)
    reservation = warehouse.reserve("desk", 2)
    reservation.release()
    assert reservation.state == "released"
    assert warehouse.available("desk") == 5


def test_more_than_available_cannot_be_reserved():
    warehouse = Warehouse()
    warehouse.add("rug", 2)
    warehouse.reserve("rug", 1)
    with pytest.raises(ValueError):
        warehouse.reserve("rug", 2)
    assert warehouse.available("rug") == 1


def test_no_pieces_cannot_be_reserved():
    warehouse = Warehouse()
    warehouse.add("rug", 2)
    with pytest.raises(ValueError):
        warehouse.reserve("rug", 0)


def test_an_unknown_item_cannot_be_reserved():
    with pytest.raises(KeyError):
        Warehouse().reserve("unicorn", 1)


@pytest.fixture
def stocked():
    warehouse = Warehouse()
    warehouse.add("lamp", 3)
    return warehouse


def test_release_twice(stocked):
    reservation = stocked.reserve("lamp", 1)
    reservation.release()
    with pytest.raises(RuntimeError):
        reservation.release()


def test_reserving_everything(stocked):
    assert stocked.reserve("lamp", 3).count == 3
